"""Switches stand for components, in the order that the documentation gives them."""

from charts.worlds import CONDITIONS, components, concerned, is_allowed, worlds_of


def test_worlds_are_all_combinations_that_are_allowed() -> None:
    two = [*worlds_of(["extender", "scheduler"])]
    assert two == [frozenset(), frozenset(("extender",)), frozenset(("scheduler",))]
    assert len([*worlds_of(["extender", "ha", "fit"])]) == 8
    assert all(len(world) <= 1 for world in worlds_of(CONDITIONS, most=1))


def test_what_excludes_each_other_is_not_allowed() -> None:
    assert is_allowed(frozenset(("extender", "ha", "cert-manager")))
    assert not is_allowed(frozenset(("app-wrapper", "ha", "mutating-admission-policy")))


def test_cert_manager_makes_the_extenders_certificates_too() -> None:
    assert components(frozenset(("cert-manager",))) == ["cert-manager"]
    three = components(frozenset(("ha", "cert-manager", "extender")))
    assert three == ["extender", "cert-manager", "cert-manager-extender", "ha"]


def test_a_switch_concerns_an_object_alone_or_beside_another() -> None:
    def together(world: frozenset[str]) -> bool:
        return {"ha", "extender"} <= world

    assert concerned(lambda one, other: together(one) != together(other)) == ["extender", "ha"]
    assert concerned(lambda one, other: ("fit" in one) != ("fit" in other)) == ["fit"]
