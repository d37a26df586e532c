// The views by their names: each module of a view that the page has puts its own in.
export const makers = {};

// What else stands among what chooses a map.
export const choosers = [];

// What stands below a map, made anew with every change.
export const tools = [];

// What only the page of a long text has.
export const long = {};

// What a link says as it is, each with what it is where a link says nothing. Views add what they have of their own.
export const plain = {
  scale: "", // its kind; nothing: the report's
  sort: "", // by what an overview is: a column of the table of heads, or what heads look at; nothing: by place
  digits: "three", // of numbers; or "all": as they are stored
  side: "from", // of the chosen word: what it attends to, or with "to" what attends to it
};
