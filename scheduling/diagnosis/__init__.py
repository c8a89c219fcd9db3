"""Why a gang does not fit, in numbers that a user can act on."""
