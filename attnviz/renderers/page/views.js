// The views by their names: each module of a view that the page has puts its own in.
export const makers = {};

// What stands beside what chooses a map.
export const tools = [];

// What only the page of a long text has.
export const long = {};
