"""Explains each reason: what it means and what to do. The one source of these texts.

`muster explain` prints them; a test holds the table in docs/reasons.md against them.
"""

from collections.abc import Mapping
from typing import NamedTuple

from scheduling.model.verdict import Reason


class Explanation(NamedTuple):
    """Cause and remedy of a reason."""

    means: str
    remedy: str


EXPLANATIONS: Mapping[Reason, Explanation] = {
    Reason.GANG_INCOMPLETE: Explanation(
        "pods of the minimum do not exist yet, or wait for a ResourceClaim, which the "
        "message names",
        "nothing for some seconds; then look at the RayCluster's Events and at KubeRay's "
        "log, for a claim at the pod's Events",
    ),
    Reason.PODS_REFUSED: Explanation(
        "KubeRay cannot create a pod of the minimum, or of a held gang could not: a "
        "ResourceQuota, a LimitRange, a policy or an invalid template; or an object "
        "of an AppWrapper cannot be created, or its pods cannot be foreseen: the "
        "message names the item, the field, the value and what is allowed",
        "do what the API server's words in the message ask for",
    ),
    Reason.NOT_RELEASED_BY_MUSTER: Explanation(
        "pods of the minimum have no gate, though Muster did not release them, and are not bound",
        "nothing: kube-scheduler binds them, or they are made again, gated",
    ),
    Reason.TERMINATING: Explanation(
        "the RayCluster is being deleted, or is gone while its Gang is not; as an "
        "Event: the Gang of an earlier RayCluster of this name is not gone",
        "remove the cause of the finalizer that holds it",
    ),
    Reason.OPTED_OUT: Explanation(
        "the RayCluster was opted out while its pods used quota: they run on, and "
        "count in the queue that the message names",
        "nothing: the Gang goes with the last of these pods, or with the quota of its queue",
    ),
    Reason.FOREIGN_GATES: Explanation(
        "pods carry scheduling gates of other controllers beside Muster's",
        "have the controller of the gates in the message remove them",
    ),
    Reason.MISCONFIGURED: Explanation(
        "a label, an annotation or a pod has a value that cannot be used",
        "write one of the values that the message allows",
    ),
    Reason.DEADLINE_NEAR: Explanation(
        "KubeRay ends a RayJob soon whose gang still waits: its `activeDeadlineSeconds` or "
        "`preRunningDeadlineSeconds` runs from its creation on; told by an Event on the RayJob",
        "give the RayJob a later deadline, or make room; a RayJob that is made anew begins anew",
    ),
    Reason.JOB_ENDED: Explanation(
        "the RayJob ended before its gang started, of a deadline for one, and KubeRay left its "
        "RayCluster: nothing would run on it, so its gang is `Finished` and is not started",
        "delete the RayJob; with `shutdownAfterJobFinishes: true` KubeRay deletes the "
        "RayCluster itself",
    ),
    Reason.WRAPPER_ENDED: Explanation(
        "the AppWrapper has succeeded or failed: its gang is `Finished` and counts nowhere",
        "nothing: the Gang goes with the AppWrapper",
    ),
    Reason.NO_GANG: Explanation(
        "as an Event on a pod: it has the gate `muster.dev/gang`, and no RayCluster made it and "
        "no AppWrapper is named by it, so nothing takes the gate off",
        "delete the pod, and leave the gate out of what makes it: Muster writes it itself",
    ),
    Reason.UNKNOWN_KEY: Explanation(
        "the RayCluster has a key under `muster.dev/` that Muster does not read, or its pods have "
        "an annotation by which another scheduler shares GPUs; the gang goes on without it",
        "correct the key: the message has the nearest one; keys marked (annotation) "
        "in the table are not read as labels. In place of a share request whole devices",
    ),
    Reason.SUSPENDED: Explanation(
        "the RayCluster is suspended, not by Muster, and asks for no pods; so is an "
        "AppWrapper with `spec.suspend: true`",
        "resume it (`spec.suspend: false`) when it is to run",
    ),
    Reason.HELD: Explanation(
        "the pods of a held gang are being deleted, or its RayCluster resumed or "
        "suspended; condition `Gathered`: no pod exists, and all are foreseen",
        "nothing; where the message says that it could not be resumed, allow the "
        "coordinator to patch RayClusters",
    ),
    Reason.NOT_HELD: Explanation(
        "condition `StartHeld`: the gang was to be held and is not; the message says why",
        "nothing: its pods are gated. Where it says that `status.held` is dropped, "
        "apply `manifests/crds` of this release",
    ),
    Reason.PENDING: Explanation(
        "all pods exist and the next decision is due",
        "nothing: it passes within a second or so",
    ),
    Reason.WAITS_FOR_MEMBERS: Explanation(
        "the gang starts together with others, and not all of them are there and ready; the "
        "message names those that are, and how many are missing",
        "create the others, or mend the one that the message names",
    ),
    Reason.INSUFFICIENT_RESOURCES: Explanation(
        "there are nodes that could run the pods, and they have not enough room free",
        "wait, free room (the message names its holders), ask for less, or add nodes",
    ),
    Reason.NEVER_FITS: Explanation(
        "the nodes that could run the pods would not hold them if they were empty",
        "ask for less, or add nodes: the message names the largest node, or what all have",
    ),
    Reason.NO_FEASIBLE_NODE: Explanation(
        "no node may run some pods, whatever is free: taints, selectors (the "
        "queue's `nodeSelector` too), affinity, topology spread, volumes",
        "change what the message names; of a node selector or affinity it says "
        "which label no node has and which values there are",
    ),
    Reason.QUOTA_EXCEEDED: Explanation(
        "the gang's queue may not take what the gang needs: its quota and what it "
        "may borrow are used, or are too small",
        "wait until gangs of the queue end, or of those that it borrows from; where "
        'the message says "at most", ask for less or have the quota raised',
    ),
    Reason.QUEUE_BLOCKED: Explanation(
        "a gang that is blocked is before it, and the queue lets nothing pass; or "
        "there is room, and the gang would delay the start of a blocked one",
        "nothing: it starts after that gang; in a queue that backfills, a shorter "
        "`muster.dev/expected-duration` may let it pass",
    ),
    Reason.QUEUE_INACTIVE: Explanation(
        "the GangQueue cannot work as it is written, or is being deleted; no gang "
        "of it is admitted",
        "have the GangQueue mended: the message names the field",
    ),
    Reason.QUEUE_STOPPED: Explanation(
        "an admin stopped the GangQueue, or one above it (`spec.stop`): nothing new is admitted, "
        "and with `HoldAndDrain` what runs is stopped and waits in its place",
        "ask the admin of the queue that the message names; it goes on with `stop: None`",
    ),
    Reason.READY_TIMEOUT: Explanation(
        "the minimum was not ready within the `readySeconds` of its queue, so the "
        "gang is stopped, or it waits until it may start again",
        "look at why pods do not get ready (images, the head's log)",
    ),
    Reason.RETRIES_EXHAUSTED: Explanation(
        "phase `Failed`: that happened once more than the queue grants `retries`",
        "mend the cause, then edit the RayCluster's spec or give it another value "
        "of `muster.dev/retry`",
    ),
    Reason.BELOW_MINIMUM: Explanation(
        "a gang that ran lost a part of its minimum, and there was no room for the replacement, "
        "or none came, within the `slotSeconds` of its queue: it goes on without, or is stopped "
        "whole and waits again, as `whenBroken` of its queue says",
        "make room for what the message names, or nothing: Ray survives a worker",
    ),
    Reason.HEAD_LOST: Explanation(
        "the head of a gang that ran is gone; its slot is kept for the next one, but KubeRay makes "
        "no other for a RayJob in `SidecarMode`",
        "nothing, or switch Ray's GCS fault tolerance on, with which workers survive their head",
    ),
    Reason.NAMESPACE_LIMIT: Explanation(
        "so many older gangs of the namespace wait that this one is not looked at yet",
        "nothing: it comes up as those start or end; where those can never start, "
        "delete or mend them, or raise `WAITING_PER_NAMESPACE`",
    ),
    Reason.PREEMPTING: Explanation(
        "other gangs are being stopped for this one; the message names them and "
        "says how many pods are left",
        "nothing; it starts once they are gone",
    ),
    Reason.PREEMPTED: Explanation(
        "the gang was stopped for another one, which the message names, and waits "
        "in its place again",
        "nothing",
    ),
    Reason.UNSUPPORTED: Explanation(
        "the pods have a constraint that Muster does not judge, so that nothing is promised",
        "do what the message says in brackets behind the constraint",
    ),
    Reason.UNDECIDED: Explanation(
        "the search ended at its limit without an answer, or the gang waits until "
        "released pods are bound",
        "nothing: it is tried again whenever room changes; simpler constraints "
        "between pods make it certain",
    ),
    Reason.ADMITTED: Explanation(
        "the whole minimum has its place, and its pods are released or on their way",
        "nothing",
    ),
    Reason.RELEASE_REFUSED: Explanation(
        "the API server refuses the release of a pod: a policy or a webhook",
        "allow it",
    ),
    Reason.BIND_REFUSED: Explanation(
        "kube-scheduler refused a pod on the node that it was placed on; it is placed elsewhere",
        "look at kube-scheduler's words in the message",
    ),
    Reason.RUNNING: Explanation(
        "the minimum is ready",
        "nothing; the message counts pods that wait beside it",
    ),
    Reason.EXCESS_PODS: Explanation(
        "gated pods beyond what the RayCluster asks for",
        "nothing: KubeRay deletes them",
    ),
    Reason.GATHERED: Explanation(
        "condition `Gathered`: all pods of the minimum exist",
        "nothing",
    ),
    Reason.NOT_REQUIRED: Explanation(
        "condition `QuotaReserved`: no quota applies to the gang's queue, so there "
        "is none to reserve; of the Gang of an AppWrapper: no wrapped object has "
        "pods, and all are created at once",
        "nothing",
    ),
}
