// Writes what the main table of plugin DynamicResources asks, and what the plugin answers: laid into
// the package by `python -m tests.kube.devices.plugin_recorded`, which gives the plugin's own
// methods other names (answerPreEnqueue and so on).

package dynamicresources

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// recordedCase is all that the plugin is told of one pod. InFlight are claims whose allocation is
// not written yet. Limited says that Filter has less time than the default, or is cancelled.
type recordedCase struct {
	Features []string
	Limited  bool
	Pod      *v1.Pod
	Claims   []*resourceapi.ResourceClaim
	InFlight []*resourceapi.ResourceClaim
	Classes  []*resourceapi.DeviceClass
	Slices   []*resourceapi.ResourceSlice
	Nodes    []*v1.Node
	Answers  recordedAnswers
}

// recordedAnswers are codes of the framework; "" where the plugin was not asked.
type recordedAnswers struct {
	PreEnqueue string
	PreFilter  string
	Filter     map[string]recordedFilter
}

// recordedFilter holds, for each claim to allocate on a node, its devices: request, driver, pool,
// device.
type recordedFilter struct {
	Code    string
	Devices [][][4]string
}

var (
	recordedCases  = map[*DynamicResources]*recordedCase{}
	recordedNumber = map[*DynamicResources]int{}
)

func (pl *DynamicResources) PreEnqueue(ctx context.Context, pod *v1.Pod) *fwk.Status {
	status := pl.answerPreEnqueue(ctx, pod)
	if pl.enabled {
		told := &recordedCase{Features: featuresOf(pl), Answers: recordedAnswers{PreEnqueue: status.Code().String()}}
		recordedCases[pl], recordedNumber[pl] = told, len(recordedNumber)
		told.note(pl, pod)
		told.write(pl)
	}
	return status
}

func (pl *DynamicResources) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	told := recordedCases[pl]
	if told != nil {
		told.note(pl, pod)
	}
	result, status := pl.answerPreFilter(ctx, state, pod, nodes)
	if told != nil {
		told.Answers.PreFilter = status.Code().String()
		told.write(pl)
	}
	return result, status
}

func (pl *DynamicResources) Filter(ctx context.Context, cs fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
	status := pl.answerFilter(ctx, cs, pod, nodeInfo)
	if told := recordedCases[pl]; told != nil {
		node := nodeInfo.Node()
		short := pl.fts.EnableDRASchedulerFilterTimeout && 0 < pl.filterTimeout && pl.filterTimeout < time.Second
		told.Limited = told.Limited || short || ctx.Err() != nil
		if told.Answers.Filter == nil {
			told.Answers.Filter = map[string]recordedFilter{}
		}
		told.Nodes = append(told.Nodes, node)
		told.Answers.Filter[node.Name] = recordedFilter{status.Code().String(), recordedDevices(cs, node.Name)}
		told.write(pl)
	}
	return status
}

func (told *recordedCase) note(pl *DynamicResources, pod *v1.Pod) {
	var err error
	told.Pod, told.InFlight = pod, nil
	if told.Claims, err = pl.draManager.ResourceClaims().List(); err != nil {
		panic(err)
	}
	if told.Classes, err = pl.draManager.DeviceClasses().List(); err != nil {
		panic(err)
	}
	if told.Slices, err = pl.draManager.ResourceSlices().ListWithDeviceTaintRules(); err != nil {
		panic(err)
	}
	for _, each := range pl.draManager.(*DefaultDRAManager).resourceClaimTracker.allInFlightAllocationsRLocked() {
		told.InFlight = append(told.InFlight, each.claim)
	}
}

func (told *recordedCase) write(pl *DynamicResources) {
	content, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	name := fmt.Sprintf("%03d.json", recordedNumber[pl])
	if err := os.WriteFile(filepath.Join(os.Getenv("MUSTER_RECORDS"), name), content, 0o644); err != nil {
		panic(err)
	}
}

func recordedDevices(cs fwk.CycleState, node string) [][][4]string {
	found := make([][][4]string, 0)
	state, err := getStateData(cs)
	if err != nil {
		return found
	}
	for _, result := range state.nodeAllocations[node].allocationResults {
		devices := make([][4]string, 0)
		for _, each := range result.Devices.Results {
			devices = append(devices, [4]string{each.Request, each.Driver, each.Pool, each.Device})
		}
		found = append(found, devices)
	}
	return found
}

func featuresOf(pl *DynamicResources) []string {
	found := make([]string, 0)
	all := reflect.ValueOf(pl.fts)
	for at := range all.NumField() {
		if all.Field(at).Bool() {
			found = append(found, all.Type().Field(at).Name)
		}
	}
	return found
}
