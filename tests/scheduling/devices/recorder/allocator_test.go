// Writes what the tables of TestAllocator ask, and what the allocator answers: laid over the file of
// the same name in structured/internal/incubating by `python -m tests.scheduling.devices.recorded`.

package incubating

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
)

// input is all that the allocator is told. Shared are devices of which shares are taken, Consumed
// says how much of each (driver, pool, device, amounts).
type input struct {
	Features  []string
	Allocated [][3]string
	Shared    [][3]string
	Consumed  [][4]any
	Classes   []*resourceapi.DeviceClass
	Slices    []*resourceapi.ResourceSlice
	Node      *v1.Node
	Claims    []*resourceapi.ResourceClaim
}

// answer is what it says: devices for each claim (request, driver, pool, device, of a share what it
// consumes), or the kind of an error.
type answer struct {
	Results [][][]any
	Error   string
}

// record holds the answer with the features of the case, and with all that the allocator supports.
type record struct {
	Input       input
	Answer      answer
	AllFeatures answer
	Selectors   []selectorAnswers
}

// selectorAnswers holds, for each device in the order of the slices, t, f or e (an error).
type selectorAnswers struct {
	Text    string
	Answers string
}

type recorder struct {
	internal.Allocator
	asked input
	state AllocatedState
	cache *cel.Cache
	lists DeviceClassLister
}

func (r *recorder) GetStats() Stats {
	return r.Allocator.(internal.AllocatorExtended).GetStats()
}

func (r *recorder) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	results, err := r.Allocator.Allocate(ctx, node, claims)
	if ctx.Err() != nil {
		return results, err
	}
	r.asked.Node, r.asked.Claims = node, claims
	if classes, listErr := r.lists.List(); listErr == nil {
		r.asked.Classes = classes
	}
	told := record{Input: r.asked, Answer: answer{devicesOf(results), kindOf(err)}, Selectors: r.selectors(ctx)}
	told.AllFeatures = r.withAllFeatures(ctx, node, claims)
	r.write(told)
	return results, err
}

func (r *recorder) withAllFeatures(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) answer {
	allocator, err := NewAllocator(ctx, SupportedFeatures, r.state, r.lists, r.asked.Slices, r.cache)
	if err != nil {
		panic(err)
	}
	results, err := allocator.Allocate(ctx, node, claims)
	return answer{devicesOf(results), kindOf(err)}
}

func (r *recorder) write(told record) {
	asked, err := json.Marshal(told.Input)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(asked)
	content, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	name := hex.EncodeToString(sum[:6]) + ".json"
	if err := os.WriteFile(filepath.Join(os.Getenv("MUSTER_RECORDS"), name), content, 0o644); err != nil {
		panic(err)
	}
}

func (r *recorder) selectors(ctx context.Context) []selectorAnswers {
	found := make([]selectorAnswers, 0)
	for _, text := range r.texts() {
		compiled := r.cache.GetOrCompile(text)
		answers := ""
		for _, slice := range r.asked.Slices {
			for _, device := range slice.Spec.Devices {
				answers += ask(ctx, compiled, slice.Spec.Driver, device)
			}
		}
		found = append(found, selectorAnswers{text, answers})
	}
	return found
}

func ask(ctx context.Context, compiled cel.CompilationResult, driver string, device resourceapi.Device) string {
	if compiled.Error != nil {
		return "e"
	}
	matches, _, err := compiled.DeviceMatches(ctx, cel.Device{
		Driver: driver, AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes: device.Attributes, Capacity: device.Capacity,
	})
	switch {
	case err != nil:
		return "e"
	case matches:
		return "t"
	}
	return "f"
}

func (r *recorder) texts() []string {
	texts := map[string]bool{}
	note := func(selectors []resourceapi.DeviceSelector) {
		for _, each := range selectors {
			if each.CEL != nil {
				texts[each.CEL.Expression] = true
			}
		}
	}
	for _, class := range r.asked.Classes {
		note(class.Spec.Selectors)
	}
	for _, claim := range r.asked.Claims {
		for _, request := range claim.Spec.Devices.Requests {
			if request.Exactly != nil {
				note(request.Exactly.Selectors)
			}
			for _, alternative := range request.FirstAvailable {
				note(alternative.Selectors)
			}
		}
	}
	sorted := make([]string, 0, len(texts))
	for text := range texts {
		sorted = append(sorted, text)
	}
	sort.Strings(sorted)
	return sorted
}

func devicesOf(results []resourceapi.AllocationResult) [][][]any {
	found := make([][][]any, 0, len(results))
	for _, result := range results {
		devices := make([][]any, 0, len(result.Devices.Results))
		for _, each := range result.Devices.Results {
			row := []any{each.Request, each.Driver, each.Pool, each.Device}
			if each.ShareID != nil {
				amounts := each.ConsumedCapacity
				if amounts == nil {
					amounts = map[resourceapi.QualifiedName]resource.Quantity{}
				}
				row = append(row, amounts)
			}
			devices = append(devices, row)
		}
		found = append(found, devices)
	}
	return found
}

func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, internal.ErrFailedAllocationOnNode):
		return "node"
	}
	return "error"
}

func partsOf(id DeviceID) [3]string {
	return [3]string{id.Driver.String(), id.Pool.String(), id.Device.String()}
}

func before(one, other [3]string) bool {
	return one[0]+"/"+one[1]+"/"+one[2] < other[0]+"/"+other[1]+"/"+other[2]
}

func newRecorder(
	ctx context.Context, features Features, state AllocatedState, lists DeviceClassLister,
	slices []*resourceapi.ResourceSlice, cache *cel.Cache,
) (internal.Allocator, error) {
	allocator, err := NewAllocator(ctx, features, state, lists, slices, cache)
	if err != nil {
		return nil, err
	}
	names := features.Set().UnsortedList()
	sort.Strings(names)
	asked := input{Features: names, Slices: slices}
	for id := range state.AllocatedDevices {
		asked.Allocated = append(asked.Allocated, partsOf(id))
	}
	for id := range state.AllocatedSharedDeviceIDs {
		asked.Shared = append(asked.Shared, partsOf(id.GetDeviceID()))
	}
	for id, amounts := range state.AggregatedCapacity {
		asked.Consumed = append(asked.Consumed, [4]any{id.Driver.String(), id.Pool.String(), id.Device.String(), amounts})
	}
	sort.Slice(asked.Allocated, func(i, j int) bool { return before(asked.Allocated[i], asked.Allocated[j]) })
	sort.Slice(asked.Shared, func(i, j int) bool { return before(asked.Shared[i], asked.Shared[j]) })
	sort.Slice(asked.Consumed, func(i, j int) bool { return fmt.Sprint(asked.Consumed[i][:3]) < fmt.Sprint(asked.Consumed[j][:3]) })
	return &recorder{Allocator: allocator, asked: asked, state: state, cache: cache, lists: lists}, nil
}

func TestAllocator(t *testing.T) {
	allocatortesting.TestAllocator(t, SupportedFeatures, newRecorder)
	allocatortesting.TestLexicographicalAllocator(t, SupportedFeatures, newRecorder)
}
