"""The ways in which a CEL expression gives no answer."""


class CelError(Exception):
    """It does not compile, or fails on this device; kube-scheduler meets the same error."""


class NotReadable(Exception):  # noqa: N818 - what the text is to us
    """kube-scheduler may well evaluate it, but this evaluator does not; the text names what."""


class OverBudget(NotReadable):
    """It takes more steps than one evaluation is given."""
