"""Words the status of an AppWrapper for its generation, beside our own reason.

The words are those that scripts of their users look for, to the letter: dots and all.
"""

from msgspec.structs import replace

from appwrapper.spec.wrapped import Generation
from appwrapper.status.codeflare_states import codeflare_conditions
from appwrapper.status.mcad_states import mcad_status
from appwrapper.status.told import Told, transitions
from kube.objects.app_wrapper import AppWrapperStatus


def status_of(generation: Generation, told: Told, before: AppWrapperStatus) -> AppWrapperStatus:
    """Return the status that an AppWrapper is to have; equal to the one before where none is new.

    `phase`, `reason`, `message` and the counts of transitions are those of either generation.
    """
    ours = replace(
        before,
        phase=str(told.phase),
        transition_count=transitions(before, told.phase),
        reason=told.reason,
        message=told.message,
    )
    if generation is Generation.MCAD:
        return mcad_status(told, ours)
    conditions = codeflare_conditions(told, before.conditions)
    return replace(ours, conditions=conditions, resetting_count=told.resets)
