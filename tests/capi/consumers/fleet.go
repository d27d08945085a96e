// fleet CLUSTER.yaml DEVICES.yaml: ResNet-50 on 1 to 4 nodes, and the best batch for each.
package main

// #cgo pkg-config: stepcast
// #include <stdlib.h>
// #include <stepcast.h>
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// The library keeps no pointer, but structs of pointers are handed to it: what these point to is
// memory of C, made once and used again.
func ints(n int) []C.int32_t {
	return unsafe.Slice((*C.int32_t)(C.calloc(C.size_t(n), C.sizeof_int32_t)), n)
}

func doubles(n int) []C.double {
	return unsafe.Slice((*C.double)(C.calloc(C.size_t(n), C.sizeof_double)), n)
}

func text(s string) *C.char { return C.CString(s) } // as long as the program: never freed here

func check(status C.stepcast_status, message *C.char) {
	if status == C.STEPCAST_OK {
		return
	}
	if message == nil {
		message = C.stepcast_status_text(status)
	}
	fmt.Fprintln(os.Stderr, "fleet:", C.GoString(message))
	os.Exit(1)
}

func main() {
	if len(os.Args) != 3 {
		os.Exit(2)
	}
	var message *C.char
	var cluster *C.stepcast_cluster
	var device *C.stepcast_device
	var workload *C.stepcast_workload
	var predictor *C.stepcast_predictor
	var plan *C.stepcast_plan
	var compiled *C.stepcast_compiled

	// Once for a cluster and a workload.
	status := C.stepcast_cluster_read(text(os.Args[1]), &cluster, &message)
	check(status, message)
	defer C.stepcast_cluster_free(cluster)
	info := C.stepcast_cluster_info{struct_size: C.sizeof_stepcast_cluster_info}
	check(C.stepcast_cluster_get_info(cluster, &info), nil)
	status = C.stepcast_device_read(text(os.Args[2]), info.device, &device, &message)
	check(status, message)
	defer C.stepcast_device_free(device)
	status = C.stepcast_workload_find(text("resnet50"), &workload, &message)
	check(status, message)
	defer C.stepcast_workload_free(workload)
	status = C.stepcast_predictor_create(cluster, workload, device, &predictor, &message)
	check(status, message)
	defer C.stepcast_predictor_free(predictor)

	// Once for a kind of plan.
	status = C.stepcast_plan_create(&plan, &message)
	check(status, message)
	defer C.stepcast_plan_free(plan)
	status = C.stepcast_plan_set_text(plan, text("strategy"), text("ring"), &message)
	check(status, message)
	status = C.stepcast_plan_set_number(plan, text("local_batch"), 128, &message)
	check(status, message)
	status = C.stepcast_compiled_create(predictor, plan, nil, &compiled, &message)
	check(status, message)
	defer C.stepcast_compiled_free(compiled)

	// As often as there is something to ask: the steps of all, in one call.
	const count = 4
	nodes := ints(count)
	for i := range nodes {
		nodes[i] = C.int32_t(i + 1)
	}
	step, low, high := doubles(count), doubles(count), doubles(count)
	queries := C.stepcast_query_arrays{
		struct_size: C.sizeof_stepcast_query_arrays,
		count:       count,
		workers:     &nodes[0], // one device each; all else is the plan's
		nodes:       &nodes[0],
	}
	answers := C.stepcast_forecast_arrays{
		struct_size: C.sizeof_stepcast_forecast_arrays,
		step_time_s: &step[0],
		low_s:       &low[0],
		high_s:      &high[0],
	}
	check(C.stepcast_compiled_predict_many(compiled, &queries, &answers, nil), nil)
	fmt.Printf("resnet50 on %s, %s, local batch 128\n", C.GoString(info.name),
		C.GoString(C.stepcast_compiled_strategy(compiled)))
	fmt.Println("nodes  step [s]   from     to")
	for i := range nodes {
		fmt.Printf("%5d  %8.3f  %5.3f  %5.3f\n", nodes[i], step[i], low[i], high[i])
	}

	// And the best batches, where a sample counts for what it is worth.
	localBatch, accumulationSteps, goodput := ints(count), ints(count), doubles(count)
	allocations := C.stepcast_allocation_arrays{
		struct_size: C.sizeof_stepcast_allocation_arrays,
		count:       count,
		workers:     &nodes[0],
		nodes:       &nodes[0],
	}
	search := C.stepcast_batch_search{struct_size: C.sizeof_stepcast_batch_search}
	check(C.stepcast_batch_search_init(&search), nil)
	search.least_global_batch = 128
	search.most_global_batch = 8192
	search.noise_scale_samples = 4000
	search.initial_batch_samples = 128
	choices := C.stepcast_batch_choice_arrays{
		struct_size:           C.sizeof_stepcast_batch_choice_arrays,
		local_batch:           &localBatch[0],
		accumulation_steps:    &accumulationSteps[0],
		goodput_samples_per_s: &goodput[0],
	}
	check(C.stepcast_compiled_choose_batches(compiled, &allocations, &search, &choices, nil), nil)
	fmt.Println("nodes  local batch  micro-steps  goodput [samples/s]")
	for i := range nodes {
		fmt.Printf("%5d  %11d  %11d  %19.1f\n", nodes[i], localBatch[i], accumulationSteps[i],
			goodput[i])
	}
}
