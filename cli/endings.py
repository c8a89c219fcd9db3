"""Maps the outcome of a command to its exit code, and says why it could not answer."""

FINE = 0
NO = 1
WRONG_USE = 2
NOT_READ = 3
INTERRUPTED = 130
NOT_TAKEN = 141
"""What read the output ended first, as `head` does: what a shell says of other programs then."""

TABLE = f"""\
  {FINE}  an answer, printed; of what writes: done
  {NO}  the answer is no: no such object, it does not fit, it was refused, something is left to do
  {WRONG_USE}  the command line or the input cannot be used
  {NOT_READ}  the cluster cannot be read: not reachable, not allowed, not logged in, no Muster there
"""
"""As `--help` and the documents show it."""

LOG_IN_AGAIN = "the credentials are wrong or have expired, log in again"
NOT_REACHED = "the API server cannot be reached"


class Ending(Exception):  # noqa: N818 - an end, which is not always a fault
    """The command ends here; the message says why, in one line."""

    code = NOT_READ


class Absent(Ending):
    """The object that the caller named does not exist."""

    code = NO


class Unusable(Ending):
    """What was given to the command cannot be used."""

    code = WRONG_USE


class StandsInTheWay(Ending):
    """What has to be done first could not be, and to go on without it would do harm."""

    code = NO


class Outdated(StandsInTheWay):
    """The object is another by now than was read, or there is one of that name already."""


class Declined(Ending):
    """The person did not agree."""

    code = NO


class CannotRead(Ending):
    """The cluster, or a kind of its objects, cannot be read."""


class NotServed(CannotRead):
    """The API server knows no such kind."""


class NotAllowed(CannotRead):
    """The caller has no right to read such objects."""
