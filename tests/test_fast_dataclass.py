"""`entity`, `frozen` and `sealed`: they behave as dataclasses do, and cost less than half to define."""

import ast
import dataclasses
import functools
import pickle
import time

import pytest

from bankshot.sim import fast_dataclass
from bankshot.sim.fast_dataclass import entity, frozen, sealed
from tools.import_graph import FILES, module_of


@frozen
class Point:
    x: int
    y: int = 2
    note: str = dataclasses.field(default="", compare=False)


@frozen
class Place(Point):
    name: str = "here"


@frozen
class Nothing:
    pass


@frozen(eq=False)
class Unique:
    x: int


@entity
class Branch:
    kind: str
    leaves: list[str] = dataclasses.field(default_factory=list)


def test_equal_are_those_of_one_class_with_equal_members():
    assert Point(1) == Point(1, 2)
    assert Point(1, note="a") == Point(1, note="b")
    assert hash(Point(1, note="a")) == hash(Point(1, note="b"))
    assert Point(1) != Point(2)
    assert Point(1) != Place(1)
    assert Place(1, name="here") != Place(1, name="there")
    assert Point(1) != (1, 2)
    assert Nothing() == Nothing()
    assert {Point(1), Point(1), Place(1)} == {Place(1), Point(1)}


def test_an_instance_equals_itself_whatever_it_holds():
    @frozen
    class Single:
        x: float

    one = Unique(1), Point(float("nan")), Kept(float("nan")), Single(float("nan"))
    assert one == one
    for each in one:
        assert each.__eq__(each) is True
    assert Point(float("nan"), 1) != Point(float("nan"), 1)


def test_a_class_without_a_docstring_has_its_name():
    @frozen
    class Told:
        """A record with a sentence of its own."""

        x: int

    assert Told.__doc__ == "A record with a sentence of its own."
    assert (Point.__doc__, Branch.__doc__, Kept.__doc__) == ("Point", "Branch", "Kept")


@sealed
class Kept:
    x: int
    many: list[int] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def twice(self) -> int:
        return 2 * self.x


def test_what_is_sealed_cannot_be_changed():
    kept = Kept(1)
    assert (kept, kept.twice, pickle.loads(pickle.dumps(kept))) == (Kept(1, []), 2, Kept(1))
    assert dataclasses.replace(kept, x=3) == Kept(3)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x' of Kept cannot be changed"):
        kept.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x' of Kept cannot be changed"):
        del kept.x
    assert kept.x == 1


def test_equal_only_to_itself():
    for one, other in ((Unique(1), Unique(1)), (Branch("a"), Branch("a"))):
        assert one == one
        assert one != other
        assert len({one, other}) == 2


def test_a_class_keeps_the_methods_that_it_has():
    @frozen
    class Folded:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Folded) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert Folded("A") == Folded("a")
    assert len({Folded("A"), Folded("a")}) == 1
    assert repr(Folded("A")) == "<A>"


def test_they_read_as_dataclasses_do():
    assert repr(Place(1, note="n")) == "Place(x=1, y=2, note='n', name='here')"
    assert repr(Branch("a")) == "Branch(kind='a', leaves=[])"


def test_they_are_dataclasses():
    assert dataclasses.replace(Place(1), x=3) == Place(3)
    assert dataclasses.asdict(Branch("a")) == {"kind": "a", "leaves": []}
    assert pickle.loads(pickle.dumps(Place(1))) == Place(1)
    match Place(1, 5):
        case Point(x, y):
            assert (x, y) == (1, 5)


def members(decorator):
    """A class with members of every kind."""

    @decorator
    class Copy:
        plain: int
        own: int = dataclasses.field(init=False, default=7)
        made: list[int] = dataclasses.field(init=False, default_factory=list)
        many: list[int] = dataclasses.field(default_factory=list)
        named: str = dataclasses.field(kw_only=True)
        also: str = dataclasses.field(default="also", kw_only=True)
        total: int = 0

        def __post_init__(self) -> None:
            self.total += self.plain

    return Copy


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((1,), {"named": "n"}),
        ((1, [2], 3), {"named": "n", "also": "a"}),
        ((), {"plain": 1, "many": [5], "named": "n", "total": 4}),
    ],
)
def test_they_are_made_as_dataclasses_are(given, named):
    copy = members(entity)
    one, other = copy(*given, **named), members(dataclasses.dataclass)(*given, **named)
    assert vars(one) == vars(other)
    again = copy(*given, **named)
    assert vars(again) == vars(other)
    assert again.made is not one.made


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((), {}, "missing"),
        ((1, 2, 3, "n"), {}, "positional arguments"),
        ((1,), {"named": "n", "own": 1}, "unexpected keyword"),
    ],
)
def test_what_they_are_not_made_of_is_refused(given, named, said):
    copy = members(entity)
    for _ in range(2):  # the first call is not as the others are
        with pytest.raises(TypeError, match=rf"Copy.__init__\(\).*{said}"):
            copy(*given, **named)


def test_what_makes_instances_is_written_with_the_first(monkeypatch):
    written = []
    monkeypatch.setattr(fast_dataclass, "_generated_init", lambda made: written.append(made) or (lambda self: None))
    made = frozen(type("Made", (), {"__annotations__": {}, "__module__": __name__}))
    assert written == []
    made()
    made()
    assert written == [made]


def test_a_class_makes_its_instances_itself_if_it_wants_to():
    @entity
    class Own:
        x: int

        def __init__(self) -> None:
            self.x = 5

    assert Own().x == 5


def test_one_that_is_not_a_record_itself_is_made_as_its_base_is():
    class Further(Branch):
        pass

    for _ in range(2):
        assert (Further("a", ["b"]).kind, Further("a").leaves) == ("a", [])


def test_they_cost_less_than_half_of_what_dataclasses_cost():
    def cost(decorator):
        def define():
            decorator(type("Made", (), {"__annotations__": {"a": int, "b": int}, "__module__": __name__}))

        return min(_seconds(define) for _ in range(50))

    assert cost(frozen) < cost(dataclasses.dataclass(frozen=True)) / 2


def _seconds(function):
    start = time.thread_time()
    function()
    return time.thread_time() - start


# Rows of counters: users hold them, and they are mutable and compared by value, which no decorator here offers.
BY_VALUE = {"sim.run.counters", "sim.run.site"}


def test_sim_makes_its_records_with_this_module_alone():
    users = {
        module_of(path)
        for path in FILES
        if "dataclasses" in path.read_text(encoding="utf-8")
        and any(
            isinstance(node, ast.ImportFrom)
            and node.module == "dataclasses"
            and "dataclass" in {alias.name for alias in node.names}
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert {user for user in users if user.startswith("sim.")} == BY_VALUE | {"sim.fast_dataclass"}


def test_a_member_can_be_left_out_of_the_text():
    @frozen
    class Shown:
        x: int
        hidden: int = dataclasses.field(default=2, repr=False)

    assert repr(Shown(1)).endswith("Shown(x=1)")
