"""Which token each number belongs to: an integer beside every number of a tensor. Knows tensors and no modules.

An id says of which tensor of tokens (its family), in which row of it, and at which place a token was read. Ids are a
tensor of the numbers' own shape, expanded where numbers share one, as the features of a token do: so they cost next to
nothing, and whatever a model does to the order of numbers is done to their ids, by the same operator. A number that
comes of several tokens gets the id of a new one, whose family says that it is a mixture.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

# An id is one whole number that holds family, row and place, so that torch's own operators move and compare ids: 24
# bits for 16.8 million places, 16 for 65,536 rows, and the rest of an int64 for families. All bits of NOBODY are set,
# so that it belongs to family -1.
PLACE_BITS, ROW_BITS = 24, 16
NOBODY = -1  # the id of what is of no token: a parameter, room in a cache
WORDS = torch.int32, torch.int64  # what numbers of words are
MAX_KEPT = 4096  # ids that are remembered
MAX_NUMBERS = 2**20  # of an input, each of which may be a token
Ids = Int[Tensor, "..."]
At = tuple[int, int]  # the place of a text in a list, and how many these are
Made = TypeVar("Made")
_NOBODY = torch.full((), NOBODY)


@dataclass(eq=False)
class Family:
    """Tokens that were read together, or what was made of some; of a text that a model reads again, one for all."""

    n_places: int  # when it was read first
    is_mixed: bool  # whether each comes of several tokens
    n_rows: int = 1
    is_new: bool = False  # whether the model put them in itself: a start, or a word that it chose or found
    is_learned: bool = False  # whether the model has learned them: beside words they are called by their places
    is_grid: bool = False  # whether features of theirs have ids of their own: see `Store.lay_out`
    is_changed: bool = False  # whether it began as before and went on otherwise when it was read again
    n_more: int = 0  # places that it has at last, where a model without a cache reads a text again as it grows
    n_more_rows: int = 0  # and rows, which are places where tokens are on the first axis


class Softmax(NamedTuple):
    """What is known of numbers that came out of a softmax."""

    shape: tuple[int, ...]  # of all of them
    n_keys: int  # of which there is a weight for each in a row
    is_of_unknown: bool  # whether nothing is known of the scores
    n_before: int  # attentions that were seen before it
    is_cut: bool = False  # whether those behind others were cut off: as a sink is, or queries
    changed: str = ""  # by which operator its numbers were changed


class Known(NamedTuple):
    """What is known of a tensor's numbers."""

    ids: Ids | None  # None: not known
    after: int = 0  # bit n: they come after attention n
    softmax: Softmax | None = None
    columns: Ids | None = None  # of a product of states with states, the ids of the right side's
    dropped: float = 0.0  # the share that dropout took
    allowed: Bool[Tensor, "..."] | None = None  # which scores of a softmax let attention through; None: all
    numbers: Ids | None = None  # of what the outermost module was given, an id for each, if its last axis is of places
    since: int = 0  # the operator that first worked on them after they were taken out of others
    is_copied: bool = False  # whether rows were just put together of others, so that texts may be there twice

    def turn(self) -> "Known":
        """Return what is known of the numbers with their last two axes in the other order."""
        return self.move(lambda shadow: shadow.mT)

    def fit(self, shape: Sequence[int]) -> "Known":
        """Leave out what has another shape than the numbers."""
        others = (plane for plane in PLANES if getattr(getattr(self, plane), "shape", shape) != shape)
        nothing: dict[str, Any] = dict.fromkeys(others)
        return self._replace(**nothing) if nothing else self

    def move(self, function: Callable[[Tensor], Tensor]) -> "Known":
        """Return what is known of the numbers when they were laid out anew."""
        shadows = {plane: getattr(self, plane) for plane in PLANES}
        moved: dict[str, Any] = {plane: function(of) for plane, of in shadows.items() if of is not None}
        return self._replace(**moved) if moved else self


PLANES = ("ids", "columns", "allowed", "numbers")  # what has the shape of the numbers
NOTHING = Known(None)


class Store:
    """What is known of tensors that are alive. Keeps none of them.

    Layers of a model do the same to the same ids, one after the other. So what is made of ids is looked up by what they
    are and what was done: only the first layer is worked out.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Known]] = {}
        self.families: list[Family] = []
        self.n_before = float("inf")  # of them, that were read before this pass; in no module all were
        self._mixed: dict[object, Ids] = {}  # by what was mixed: the same tokens are the same mixture again
        self._pairs: dict[int, tuple[Ids, Ids, Ids]] = {}  # by family, tokens that are made of two, and these
        self.taken_back: set[int] = set()  # ids of words that were tried, and that a cache lost again
        self._made: dict[object, tuple[Any, Any]] = {}  # and of what, alive so that no other gets its place in memory

    def get(self, tensor: object) -> Known | None:
        """Return what is known of this very tensor, if anything."""
        # Python gives the id() of a tensor that is gone to the next one. The weak reference tells whether it is still
        # the same.
        found = self._known.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def put(self, tensor: Tensor, known: Known) -> None:
        """Keep it for as long as the tensor lives; then another gets its place."""
        self._known[id(tensor)] = weakref.ref(tensor), known

    def recall(self, work_out: Callable[..., Made], *given: Any) -> Made:
        """Return what `work_out(*given)` gave for the same before: ids, or what is true of them.

        The same ids are the same memory in the same order, as nothing is ever written into ids.
        """
        # An address stands for the numbers there: to compare them would cost what is to be saved. What was given is
        # kept beside what came of it, so that no other tensor can have the address while the entry is there.
        places = ((of.data_ptr(), of.shape, of.stride()) if isinstance(of, Tensor) else of for of in given)
        key = (work_out, *places)
        if key not in self._made:
            if len(self._made) > MAX_KEPT:
                self._made.clear()
            self._made[key] = work_out(*given), given
        made: Made = self._made[key][0]
        return made

    def varies(self, ids: Ids | None, axis: int) -> bool:
        """Tell whether ids differ along an axis."""
        if ids is None or ids.shape[axis] < 2 or ids.stride(axis) == 0:
            return False
        return bool(self.recall(_differ, ids, axis))

    def is_nobodys(self, ids: Ids | None) -> bool:
        """Tell whether numbers are known to be of no token."""
        return ids is not None and not self.recall(has_tokens, ids)

    def are_tokens(self, numbers: Ids, ids: Ids | None) -> bool:
        """Tell whether numbers of an input are tokens: they differ where `ids`, those of what it reads, do not.

        Beside them may stand what is of no token, as which of them are missing.
        """
        if ids is None or bool(((ids >= 0) & (ids != ids.amax(dim=-1, keepdim=True))).any()):
            return False
        # A row of a table is one token, and each of its columns may be. Several numbers of one of a row's tokens are
        # the features of a head.
        firsts, n_tokens = numbers.amax(dim=-1), len(torch.unique(ids.amax(dim=-1)))
        is_table, is_single = n_tokens <= len(torch.unique(row_of(firsts))), numbers.shape[-1] == 1
        if is_table and is_single and self.families[int(family_of(firsts.amax()))].n_places > 1:
            return True
        return (is_table or is_single) and n_tokens < len(torch.unique(firsts))

    def find_words(self, ids: Ids) -> Bool[Tensor, "..."]:
        """Find what is of tokens, and not of what the model has learned and put beside them."""
        learned = [number for number, family in enumerate(self.families) if family.is_learned]
        return (ids >= 0) & ~torch.isin(family_of(ids), torch.tensor(learned, dtype=ids.dtype))

    def forget_learned(self, *sides: Ids) -> tuple[Ids, ...]:
        """Take what is learned for nobody's in rows with words: beside these it is called by its place."""
        words = [self.find_words(side) for side in sides]
        has_none = ~torch.cat(words, dim=1).any(dim=1, keepdim=True)
        kept = (of | has_none | (side < 0) for side, of in zip(sides, words, strict=True))
        return tuple(torch.where(of, side, NOBODY) for side, of in zip(sides, kept, strict=True))

    def is_repeated(self, tensor: Tensor) -> bool:
        """Tell whether several rows [text, …] of a tensor are of the same tokens."""
        ids = (self.get(tensor) or NOTHING).ids
        firsts = [] if ids is None or ids.ndim < 3 or len(ids) < 2 else ids[:, :1, :1].flatten(1)[:, :1].tolist()
        return len({*map(tuple, firsts)}) < len(firsts) and min(firsts) >= [0]

    def tell_apart(self, ids: Ids) -> Ids:
        """Make new tokens of rows [text, …] of which several are of one text.

        Texts that a model reads several times, as beams, are texts of their own, as are those that it joins. Parts of
        one, as sentences, are not.
        """
        firsts = ids.flatten(1)[:, 0]
        firsts = firsts[firsts >= 0] & (1 << PLACE_BITS + ROW_BITS) - 1
        return ids if len(torch.unique(firsts)) == len(firsts) else self.seed(collapse(ids).shape).expand(ids.shape)

    def lay_out(self, ids: Ids | None, shape: Sequence[int]) -> Ids | None:
        """Lay out the ids of a side [… token d] as [row, token], for every head, also where some share theirs."""
        return None if ids is None else self.recall(self._lay_out, ids, tuple(shape))

    def _lay_out(self, ids: Ids, shape: tuple[int, ...]) -> Ids:
        if len(shape) > 2 and ids.shape[1] not in (1, shape[1]):
            ids = ids.repeat_interleave(shape[1] // ids.shape[1], dim=1)
        laid = ids[..., 0].expand(shape).reshape(-1, shape[-1])
        # Where features have ids of their own, the first stands for a token, and each head has others. How far it lies
        # from that of the first token is the same in all heads.
        grids = [number for number, family in enumerate(self.families) if family.is_grid]
        is_grid = torch.isin(family_of(laid), torch.tensor(grids, dtype=laid.dtype)).all(dim=1, keepdim=True)
        return torch.where(is_grid, laid - place_of(laid.amin(dim=1, keepdim=True)), laid)

    def seed(self, shape: Sequence[int], text: Family | None = None, start: int = 0, at: At | None = None) -> Ids:
        """Make new tokens: rows are the first axis of several, places all others.

        `text`: which of those that were read before it is, and from which of its places on. `at`: where a single row
        stands in a list, and how many do.
        """
        n_rows = shape[0] if len(shape) > 1 else 1
        row, n_texts = at if at and n_rows == 1 else (0, n_rows)
        n_places = torch.Size(shape).numel() // max(1, n_rows)
        first = len(self.families) << PLACE_BITS + ROW_BITS
        family = text or Family(n_places, False, n_texts)
        family.n_more = max(family.n_more, start + n_places - family.n_places)
        family.n_more_rows = max(family.n_more_rows, n_rows - family.n_rows)
        self.families.append(family)
        rows = torch.arange(row, row + n_rows)[:, None] << PLACE_BITS
        return (rows + torch.arange(start, start + n_places) + first).reshape(tuple(shape))

    def seed_beside(self, of: Ids | None, shape: Sequence[int], at: At | None = None) -> Ids:
        """Make new tokens, in the rows of the numbers that they are made of where these are known."""
        return self.seed(shape, at=at) if of is None else self.mix(of.reshape(shape).contiguous(), is_mixed=False)

    def mix(self, ids: Ids, of: Ids | None = None, is_mixed: bool = True, is_grid: bool = False) -> Ids:
        """Make new tokens, each of several, in the rows of those. `of`: all that they were made of."""
        few = collapse(ids)
        whole = few if of is None else collapse(of)
        key = few.shape, whole.shape, whole.contiguous().numpy().tobytes()
        if key not in self._mixed:
            first, rows = len(self.families) << PLACE_BITS + ROW_BITS, torch.where(few < 0, 1 << ROW_BITS, row_of(few))
            # Mixtures are numbered within their row, from 0, in the order in which they stand: the place in a stable
            # sort by rows, less where the row begins in it. What is of nobody stays so, behind them all.
            in_order, order = rows.flatten().sort(stable=True)
            places = torch.empty_like(order)
            places[order] = torch.arange(len(order)) - torch.searchsorted(in_order, in_order)
            places = places.view(few.shape).masked_fill(few < 0, 0)
            self.families.append(Family(int(places.amax()) + 1 if places.numel() else 1, is_mixed, is_grid=is_grid))
            self._mixed[key] = torch.where(few < 0, NOBODY, first + (rows << PLACE_BITS) + places)
        return self._mixed[key].expand(ids.shape)

    def put_together(self, of: Ids) -> Ids:
        """Name what is made of the tokens along the last axis: by the only one, else by a new one.

        Where it is made of two, `take_apart` finds them again.
        """
        highest, one, other = of.amax(dim=-1), of[..., 0], of[..., -1]
        is_one = ((of < 0) | (of == highest[..., None])).all(dim=-1)
        several = of.masked_fill(is_one[..., None], NOBODY)
        made = self.mix(several.amax(dim=-1), several)
        if bool(((of == one[..., None]) | (of == other[..., None])).all()):
            self._pairs[int(family_of(made.amax()))] = made, one, other
        return torch.where(is_one, highest, made)

    def fill(self, ids: Ids | None, axis: int) -> Ids | None:
        """Give what a mask left of no token the token of all others along an axis, if that is one."""
        # Where ids are expanded, as those of 512 × 512 scores are, it costs nothing to ask.
        if ids is None or not self.varies(ids, axis):
            return ids
        token = ids.amax(dim=axis, keepdim=True)
        return token.expand(ids.shape) if bool(((ids < 0) | (ids == token)).all()) else ids

    def take_apart(self, ids: Ids) -> tuple[Ids, Ids]:
        """Return the two tokens that each is made of; where it is no pair, itself twice."""
        # Scores such as v · tanh(query + key) are of pairs of tokens, each a new one here (`put_together`). Its two are
        # looked up by its place among all that were made with it, wherever scores were moved to since.
        sides = ids, ids
        for family in {*torch.unique(family_of(collapse(ids))).tolist()} & self._pairs.keys():
            made, one, other = (each.flatten() for each in self._pairs[family])
            order, is_of = made.argsort(), family_of(ids) == family
            at = order[torch.searchsorted(made, torch.where(is_of, ids, made[order[0]]).contiguous(), sorter=order)]
            sides = torch.where(is_of, one[at], sides[0]), torch.where(is_of, other[at], sides[1])
        return sides

    def make(self, keys: Ids | None, shape: Sequence[int], places: Any = ..., is_learned: bool = False) -> Ids | None:
        """Make new tokens of [row, key], one for each query of [… query d]; the same for the same keys."""
        if keys is None or self.is_nobodys(keys):
            return None if keys is None else nobody(shape)
        apart, of_row = torch.unique(keys, dim=0, return_inverse=True)
        made = self.mix(apart.amax(dim=1, keepdim=True).expand(-1, shape[-2]).contiguous(), apart)[of_row][:, places]
        if is_learned:
            self.families[int(family_of(made.amax()))].is_learned = True
        return made.view(*shape[:-1], 1).expand(tuple(shape))

    def merge(self, one: Ids, other: Ids, is_step: bool = False) -> tuple[Ids, bool]:
        """Merge the ids of two: a token stays itself with what is of nobody, or of another text.

        Of two texts, such as words and their positions, it is the one with more rows, else the one that was read first.
        Of single tokens of one text, in a step of a recurrence, it is `one`.

        Returns whether tokens of a text were added up, too, as where states are shifted or go on from token to token.
        """
        return (one, False) if one is other else self.recall(self._merge, one, other, is_step)

    def _merge(self, one: Ids, other: Ids, is_step: bool) -> tuple[Ids, bool]:
        # Two tokens of one family are a mixture where they meet, and get a new id. Two of different families are not:
        # words and positions were read apart and are added, and the sum keeps one of the two names (see `merge`).
        if one.ndim and one.shape[-1] > 1 and not self.varies(one, -1) and not self.varies(other, -1):
            few, are_added = self.merge(one[..., :1], other[..., :1], is_step)
            return few.expand(one.shape), are_added
        if torch.equal(one, other):
            return one, False
        # What a text has one of, as the time in a diffusion, or what all texts share, as positions, gives way to its
        # tokens; a state that goes on from a pass before gives way to all that is new.
        differ = [ids.ndim > 1 and self.varies(ids, 0) for ids in (one, other)]
        ranks = []
        for ids, own_differ in zip((one, other), differ, strict=True):
            gives_way = is_single(ids) or own_differ < any(differ)
            goes_on = is_single(ids) * (family_of(ids) < self.n_before).long()
            ranks.append(family_of(ids) + (gives_way + 2 * goes_on << 40))
        found = torch.where((other < 0) | ((one >= 0) & (ranks[0] <= ranks[1])), one, other)
        mixed = (family_of(one) == family_of(other)) & (one != other) & (one >= 0)
        # What is learned has no order, as two tokens that give one answer.
        are_words = bool(self.find_words(one).any())
        are_mixed = all(ids.amax() >= 0 and self.families[int(family_of(ids.amax()))].is_mixed for ids in (one, other))
        if is_step and is_single(one) and is_single(other) and (are_mixed or bool(mixed.any())):
            return torch.where(one < 0, other, one), are_words
        if not bool(mixed.any()):
            return found, False
        # All pairs of tokens meet where each side lies along an axis of its own, and none is added to its neighbour.
        are_pairs = any(_differ(one, axis) != _differ(other, axis) for axis in range(one.ndim))
        are_of_a_text = row_of(one[mixed]).equal(row_of(other[mixed]))
        made = self.put_together(torch.stack([one, other], dim=-1))
        return torch.where(mixed, made, found), are_of_a_text and are_words and not are_pairs


def is_single(ids: Ids) -> bool:
    """Tell whether each text has one token here."""
    tokens = torch.unique(collapse(ids))
    return len(torch.unique(row_of(tokens))) == len(tokens)


def _differ(ids: Ids, axis: int) -> bool:
    few = collapse(ids)
    return bool((few != few.narrow(axis, 0, 1)).any())


def has_tokens(ids: Ids) -> bool:
    """Tell whether some of these ids are of tokens."""
    return bool((collapse(ids) >= 0).any())


def nobody(shape: Sequence[int]) -> Ids:
    """Return the ids of what is of no token."""
    return _NOBODY.expand(tuple(shape))


def family_of(ids: Any) -> Any:
    """Return the numbers of families; of nobody -1."""
    return ids >> PLACE_BITS + ROW_BITS


def row_of(ids: Any) -> Any:
    """Return the rows of tokens; of nobody all bits."""
    return (ids >> PLACE_BITS) & (1 << ROW_BITS) - 1


def place_of(ids: Any) -> Any:
    """Return the places of tokens in their rows."""
    return ids & (1 << PLACE_BITS) - 1


def collapse(shadow: Tensor) -> Tensor:
    """Leave one of each axis along which all is the same."""
    for axis in range(shadow.ndim):
        if shadow.stride(axis) == 0 and shadow.shape[axis] > 1:
            shadow = shadow.narrow(axis, 0, 1)
    return shadow


def is_learned(tensor: object) -> bool:
    """Tell whether a tensor is a parameter, or a view of one."""
    return isinstance(tensor, nn.Parameter) or (isinstance(tensor, Tensor) and isinstance(tensor._base, nn.Parameter))


def reshape(shadow: Tensor, shape: Sequence[int]) -> Tensor:
    """Reshape ids without a copy of what is the same along the last axis."""
    if shadow.numel() and shadow.ndim and len(shape) and shadow.stride(-1) == 0 and shadow.shape[-1] == shape[-1]:
        return shadow[..., 0].reshape(tuple(shape[:-1])).unsqueeze(-1).expand(tuple(shape))
    return shadow.reshape(tuple(shape))
