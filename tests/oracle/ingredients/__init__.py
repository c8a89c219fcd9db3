"""The constraints of the oracle. One module each; a new one is added to `INGREDIENTS`.

An ingredient is an instance of a subclass of `tests.oracle.ingredient.Ingredient`:

- It has a `name`, under which it is counted how often it was present (it changed a manifest or
  added an object) and how often it decided (without it the answer would have been another).
- It adds to the worlds: `add_to_nodes`, then `add_to_resident` for each pod that is there
  already, `add_to_member` for the first pod of each pod set of the gang, and `add_to_gang` for the
  pods of the gang once they are copied (to give each a claim of its own, or to change some).
  Manifests are changed in place. Everything random comes from `draw.random` (`draw.happens`,
  `draw.maybe`), which is the ingredient's own for that world: a new ingredient changes nothing of
  what the others draw from the same seed. All ingredients of a world see the same slot; a name
  that is cluster-wide begins with `draw.slot`, a label that must not reach into other worlds is
  `draw.host` or `draw.zone`. Every pod of the gang selects the nodes of its world.
- Objects that are neither nodes, pods nor namespaces are appended to `draw.objects`; the stage
  creates them in this order before all pods, and deletes them in the end. A kind that the stage
  does not know yet is added to `tests.oracle.stage.PATHS`. What they become in the cache of the
  core is said in `tests.oracle.question`.
- `status` and `metadata.deletionTimestamp` of a manifest are brought about once it was created.
  A pod that stays while it terminates needs a finalizer, which the stage takes away in the end.
- It judges: `refuses` says, from plain manifests and sharing no line with the core, whether
  kube-scheduler would refuse a pod on a node given what is bound by now; `reach` says what that
  depends on (keep to the truth: the search through everything prunes by it). `scene.objects` holds
  the further objects as the API server has stored them.
- `is_asked` and `may_sleep` are for what kube-scheduler leaves out: a plugin that it does not ask,
  and a refused pod that it does not try again.
- `without` gives the scene in which it does not exist; by default its `refuses` is left out.
- `faults` checks the final state where more is to be said of it than of each step; with
  `hidden_by_pin` kube-scheduler is also given the gang without pins where the answer was yes, and
  what it does there is held against `refuses` (after a no that is always done).
- `permits` marks what makes room instead of refusing any: it decides a yes, not a no.
- `share` is the share of worlds that it takes part in, so that not everything comes at once.
"""

from tests.oracle.ingredient import Ingredient
from tests.oracle.ingredients.mixture import Mixture
from tests.oracle.ingredients.node_affinity import NodeAffinity
from tests.oracle.ingredients.pod_affinity import PodAffinity, PodAntiAffinity
from tests.oracle.ingredients.ports import Ports
from tests.oracle.ingredients.residents import Finished, Nominated, Resized, Terminating
from tests.oracle.ingredients.resources import Resources
from tests.oracle.ingredients.series import Series
from tests.oracle.ingredients.spread import Spread
from tests.oracle.ingredients.static_volumes import StaticVolumes
from tests.oracle.ingredients.taints import Taints
from tests.oracle.ingredients.volumes import Volumes

INGREDIENTS: tuple[Ingredient, ...] = (
    Resources(),
    Taints(),
    NodeAffinity(),
    Ports(),
    PodAffinity(),
    PodAntiAffinity(),
    Terminating(),
    Finished(),
    Nominated(),
    Resized(),
    Mixture(),
    Volumes(),
    StaticVolumes(),
    Spread(),
    Series(),
)
