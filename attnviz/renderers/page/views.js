// The views by their names: each module of a view that the page has puts its own in.
export const makers = {};

// What stands below what chooses a map, made anew with every change.
export const tools = [];

// What only the page of a long text has.
export const long = {};

// Of a view that has a state of its own, what a link says of it: how that is written, and read.
export const links = {};
