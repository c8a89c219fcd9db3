"""Says which kinds cannot be wrapped: those of no namespace, and those that decide placement."""

from kube.objects import names

NEVER = frozenset(
    (
        ("", "Binding"),
        ("policy", "Eviction"),
        (names.GROUP, "Gang"),
        (names.GROUP, "GangQueue"),
    )
)
"""Kinds that bind or evict pods, or hold what Muster decided."""

CLUSTER_SCOPED = frozenset(
    (group, kind)
    for group, kinds in (
        ("", ("ComponentStatus", "Namespace", "Node", "PersistentVolume")),
        ("admissionregistration.k8s.io", (
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        )),
        ("apiextensions.k8s.io", ("CustomResourceDefinition",)),
        ("apiregistration.k8s.io", ("APIService",)),
        ("authentication.k8s.io", ("SelfSubjectReview", "TokenReview")),
        ("authorization.k8s.io", (
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        )),
        ("certificates.k8s.io", ("CertificateSigningRequest", "ClusterTrustBundle")),
        ("flowcontrol.apiserver.k8s.io", ("FlowSchema", "PriorityLevelConfiguration")),
        ("kueue.x-k8s.io", (
            "AdmissionCheck",
            "ClusterQueue",
            "Cohort",
            "MultiKueueCluster",
            "MultiKueueConfig",
            "ProvisioningRequestConfig",
            "ResourceFlavor",
            "Topology",
            "WorkloadPriorityClass",
        )),
        ("networking.k8s.io", ("IPAddress", "IngressClass", "ServiceCIDR")),
        ("node.k8s.io", ("RuntimeClass",)),
        ("rbac.authorization.k8s.io", ("ClusterRole", "ClusterRoleBinding")),
        ("resource.k8s.io", ("DeviceClass", "DeviceTaintRule", "ResourceSlice")),
        ("scheduling.k8s.io", ("PriorityClass",)),
        ("scheduling.volcano.sh", ("Queue",)),
        ("storage.k8s.io", (
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        )),
        ("storagemigration.k8s.io", ("StorageVersionMigration",)),
    )
    for kind in kinds
)  # fmt: skip
"""Kinds of Kubernetes, Kueue and Volcano that belong to no namespace."""


def refusal(group: str, kind: str) -> str:
    """Say what may be wrapped instead of such a kind; empty where it may be."""
    if kind == names.APP_WRAPPER_KIND:
        return "any kind but AppWrapper"
    if (group, kind) in CLUSTER_SCOPED:
        return "a kind whose objects are in a namespace"
    if (group, kind) in NEVER:
        return "a kind that neither binds nor evicts pods, nor is one of Muster's own"
    return ""
