// The views by their names: each module of a view that the page has puts its own in.
export const makers = {};

// What else stands among what chooses a map.
export const choosers = [];

// What stands below a map, made anew with every change.
export const tools = [];

// What only the page of a long text has.
export const long = {};

// Of a view that has a state of its own, what a link says of it: how that is written, and read.
export const links = {};
