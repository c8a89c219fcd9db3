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
        "pods of the minimum do not exist yet, or wait for a ResourceClaim, which the message"
        " names",
        "nothing for some seconds; then look at the RayCluster's Events and KubeRay's log, "
        "for a claim at the pod's Events",
    ),
    Reason.PODS_REFUSED: Explanation(
        "a pod of the minimum, or an object of an AppWrapper, cannot be created: a "
        "ResourceQuota, a LimitRange, a policy, an invalid template, or pods that cannot be "
        "foreseen",
        "do what the message asks for",
    ),
    Reason.NOT_RELEASED_BY_MUSTER: Explanation(
        "pods of the minimum have no gate, were not released by Muster, and are not bound",
        "nothing: kube-scheduler binds them, or they are made again, gated",
    ),
    Reason.TERMINATING: Explanation(
        "the RayCluster is being deleted, or is gone while its Gang is not; as an Event: an "
        "earlier RayCluster of this name has left its Gang",
        "remove the cause of the finalizer that holds it",
    ),
    Reason.OPTED_OUT: Explanation(
        "the RayCluster was opted out while its pods used quota: they run on, and count in "
        "the queue that the message names",
        "nothing: the Gang goes with the last of these pods",
    ),
    Reason.FOREIGN_GATES: Explanation(
        "pods carry scheduling gates of other controllers",
        "have the controllers that the message names remove them",
    ),
    Reason.MISCONFIGURED: Explanation(
        "a label, an annotation or a pod has a value that cannot be used",
        "write one of the values that the message allows",
    ),
    Reason.DEADLINE_NEAR: Explanation(
        "an Event on the RayJob: its `activeDeadlineSeconds` or `preRunningDeadlineSeconds` "
        "ends it soon, and its gang still waits",
        "give the RayJob a later deadline, or make room",
    ),
    Reason.JOB_ENDED: Explanation(
        "the RayJob ended before its gang started, and KubeRay left its RayCluster; or it ended on "
        "another cluster: the gang is `Finished`",
        "delete the RayJob; with `shutdownAfterJobFinishes: true` KubeRay deletes the RayCluster",
    ),
    Reason.WRAPPER_ENDED: Explanation(
        "the AppWrapper has succeeded or failed: its gang is `Finished` and counts nowhere",
        "nothing: the Gang goes with the AppWrapper",
    ),
    Reason.NO_GANG: Explanation(
        "an Event on a pod: it has the gate `muster.dev/gang`, but no RayCluster and no AppWrapper",
        "delete the pod, and leave the gate out of what makes it",
    ),
    Reason.UNKNOWN_KEY: Explanation(
        "the RayCluster has an unknown key under `muster.dev/`, or its pods an annotation by "
        "which another scheduler shares GPUs; the gang goes on without it",
        "correct the key: the message has the nearest one; annotations of the table are not "
        "read as labels. In place of a share request whole devices",
    ),
    Reason.SUSPENDED: Explanation(
        "the RayCluster is suspended, not by Muster; so is an AppWrapper with `spec.suspend: true`",
        "resume it (`spec.suspend: false`)",
    ),
    Reason.HELD: Explanation(
        "a held gang is being suspended or resumed; condition `Gathered`: no pod exists, and "
        "all are foreseen",
        "nothing; where the message says so, allow the coordinator to patch RayClusters",
    ),
    Reason.NOT_HELD: Explanation(
        "condition `StartHeld`: the gang was to be held and is not; the message says why",
        "nothing; where `status.held` is dropped, apply `manifests/crds` of this release",
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
        "ask for less, or add nodes: the message names the largest node",
    ),
    Reason.NO_FEASIBLE_NODE: Explanation(
        "no node may run some pods, whatever is free: taints, selectors (the queue's "
        "`nodeSelector` too), affinity, topology spread, volumes",
        "change what the message names; it says which labels nodes have",
    ),
    Reason.QUOTA_EXCEEDED: Explanation(
        "the gang's queue may not take what the gang needs: its quota and what it may borrow "
        "are used, or are too small",
        "wait until gangs of the queue end, or of those that it borrows from; where the "
        'message says "at most", ask for less or have the quota raised',
    ),
    Reason.QUEUE_BLOCKED: Explanation(
        "a blocked gang is before it, and the queue lets nothing pass; or the gang would "
        "delay the start of a blocked one",
        "nothing: it starts after that gang; in a queue that backfills, a shorter "
        "`muster.dev/expected-duration` may help",
    ),
    Reason.QUEUE_INACTIVE: Explanation(
        "the GangQueue cannot work as it is written, or is being deleted",
        "have the GangQueue mended: the message names the field",
    ),
    Reason.QUEUE_STOPPED: Explanation(
        "an admin stopped the GangQueue, or one above it (`spec.stop`); with `HoldAndDrain` "
        "running gangs are stopped too",
        "ask the admin of the queue that the message names",
    ),
    Reason.READY_TIMEOUT: Explanation(
        "the minimum was not ready within the `readySeconds` of its queue: the gang is "
        "stopped, or waits until it may start again",
        "look at why pods do not get ready (images, the head's log)",
    ),
    Reason.RETRIES_EXHAUSTED: Explanation(
        "phase `Failed`: starts were too late once more than the queue grants `retries`",
        "mend the cause, then edit the RayCluster's spec or change `muster.dev/retry`",
    ),
    Reason.BELOW_MINIMUM: Explanation(
        "a gang that ran lost a part of its minimum for longer than the `slotSeconds` of its "
        "queue: it goes on, or is stopped whole, as `whenBroken` says",
        "make room for what the message names, or nothing: Ray survives a worker",
    ),
    Reason.MEMBER_ENDED: Explanation(
        "the gang is stopped: another member of its group has ended, and all end with one "
        "(`muster.dev/together-end: All`)",
        "create the member anew that the message names, or delete this one",
    ),
    Reason.HEAD_LOST: Explanation(
        "the head of a gang that ran is gone; KubeRay makes no other for a RayJob in `SidecarMode`",
        "nothing, or switch Ray's GCS fault tolerance on",
    ),
    Reason.NAMESPACE_LIMIT: Explanation(
        "so many older gangs of the namespace wait that this one is not looked at yet",
        "nothing; where the older can never start, delete or mend them, or raise "
        "`WAITING_PER_NAMESPACE`",
    ),
    Reason.PREEMPTING: Explanation(
        "other gangs are being stopped for this one; the message names them and counts the "
        "pods left",
        "nothing",
    ),
    Reason.PREEMPTED: Explanation(
        "the gang was stopped for the one that the message names, and waits in its place",
        "nothing",
    ),
    Reason.UNSUPPORTED: Explanation(
        "the pods have a constraint that Muster does not judge",
        "do what the message says in brackets",
    ),
    Reason.UNDECIDED: Explanation(
        "the search ended at its limit, or the gang waits until released pods are bound",
        "nothing: it is tried again when room changes; simpler constraints between pods make "
        "it certain",
    ),
    Reason.QUOTA_RESERVED: Explanation(
        "the gang is to run on another cluster and has its quota; clusters are asked for room",
        "nothing; `muster why` says why each cluster refuses it",
    ),
    Reason.ADMITTED: Explanation(
        "the whole minimum has its place, and its pods are released",
        "nothing",
    ),
    Reason.RELEASE_REFUSED: Explanation(
        "the API server refuses the release of a pod: a policy or a webhook",
        "allow it",
    ),
    Reason.BIND_REFUSED: Explanation(
        "kube-scheduler refused a pod on its node; it is placed elsewhere",
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
        "condition `QuotaReserved`: no quota applies to the gang's queue; of an AppWrapper: "
        "no wrapped object has pods, and all are created at once",
        "nothing",
    ),
}
