// fleet CLUSTER.yaml DEVICES.yaml: ResNet-50 on 1 to 4 nodes, and the best batch for each.
use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::ptr::{null, null_mut};

// What of stepcast.h this program uses.
mod stepcast {
    use std::os::raw::{c_char, c_void};

    pub type Handle = *mut c_void; // of each kind

    #[repr(C)]
    pub struct ClusterInfo {
        pub struct_size: usize,
        pub name: *const c_char,
        pub device: *const c_char,
        pub nodes: i32,
        pub devices_per_node: i32,
        pub describes_device: i32,
        pub calibrated: i32,
    }

    #[repr(C)]
    pub struct QueryArrays {
        pub struct_size: usize,
        pub count: usize,
        pub workers: *const i32,
        pub nodes: *const i32,
        pub devices_per_node: *const i32,
        pub servers: *const i32,
        pub local_batch: *const i32,
        pub accumulation_steps: *const i32,
        pub link_bandwidth_bytes_per_s: *const f64,
        pub link_rtt_s: *const f64,
        pub link_loss_rate: *const f64,
    }

    #[repr(C)]
    pub struct ForecastArrays {
        pub struct_size: usize,
        pub step_time_s: *mut f64,
        pub low_s: *mut f64,
        pub high_s: *mut f64,
        pub log_sd: *mut f64,
        pub status: *mut i32,
    }

    #[repr(C)]
    pub struct AllocationArrays {
        pub struct_size: usize,
        pub count: usize,
        pub workers: *const i32,
        pub nodes: *const i32,
        pub devices_per_node: *const i32,
        pub servers: *const i32,
    }

    #[repr(C)]
    pub struct BatchSearch {
        pub struct_size: usize,
        pub least_global_batch: i32,
        pub most_global_batch: i32,
        pub least_local_batch: i32,
        pub most_local_batch: i32,
        pub accumulate: i32,
        pub candidates: i32,
        pub noise_scale_samples: f64,
        pub initial_batch_samples: f64,
    }

    #[repr(C)]
    pub struct BatchChoiceArrays {
        pub struct_size: usize,
        pub local_batch: *mut i32,
        pub accumulation_steps: *mut i32,
        pub step_time_s: *mut f64,
        pub throughput_samples_per_s: *mut f64,
        pub efficiency: *mut f64,
        pub goodput_samples_per_s: *mut f64,
    }

    #[rustfmt::skip]
    #[link(name = "stepcast")]
    extern "C" {
        pub fn stepcast_status_text(status: i32) -> *const c_char;
        pub fn stepcast_cluster_read(path: *const c_char, cluster: *mut Handle, error: *mut *mut c_char) -> i32;
        pub fn stepcast_cluster_get_info(cluster: Handle, info: *mut ClusterInfo) -> i32;
        pub fn stepcast_cluster_free(cluster: Handle);
        pub fn stepcast_device_read(path: *const c_char, name: *const c_char, device: *mut Handle, error: *mut *mut c_char) -> i32;
        pub fn stepcast_device_free(device: Handle);
        pub fn stepcast_workload_find(name: *const c_char, workload: *mut Handle, error: *mut *mut c_char) -> i32;
        pub fn stepcast_workload_free(workload: Handle);
        pub fn stepcast_predictor_create(cluster: Handle, workload: Handle, device: Handle, predictor: *mut Handle, error: *mut *mut c_char) -> i32;
        pub fn stepcast_predictor_free(predictor: Handle);
        pub fn stepcast_plan_create(plan: *mut Handle, error: *mut *mut c_char) -> i32;
        pub fn stepcast_plan_set_text(plan: Handle, field: *const c_char, value: *const c_char, error: *mut *mut c_char) -> i32;
        pub fn stepcast_plan_set_number(plan: Handle, field: *const c_char, value: f64, error: *mut *mut c_char) -> i32;
        pub fn stepcast_plan_free(plan: Handle);
        pub fn stepcast_compiled_create(predictor: Handle, plan: Handle, options: *const c_void, compiled: *mut Handle, error: *mut *mut c_char) -> i32;
        pub fn stepcast_compiled_strategy(compiled: Handle) -> *const c_char;
        pub fn stepcast_compiled_predict_many(compiled: Handle, queries: *const QueryArrays, answers: *const ForecastArrays, unanswered: *mut usize) -> i32;
        pub fn stepcast_batch_search_init(search: *mut BatchSearch) -> i32;
        pub fn stepcast_compiled_choose_batches(compiled: Handle, allocations: *const AllocationArrays, search: *const BatchSearch, choices: *const BatchChoiceArrays, unanswered: *mut usize) -> i32;
        pub fn stepcast_compiled_free(compiled: Handle);
    }
}
use stepcast::*;

// A struct of the interface with its size, and otherwise zero.
fn sized<T>() -> T {
    unsafe {
        let mut made: T = std::mem::zeroed();
        *(&mut made as *mut T as *mut usize) = std::mem::size_of::<T>();
        made
    }
}

fn text(string: &str) -> CString {
    CString::new(string).expect("no zero within")
}

unsafe fn string(text: *const c_char) -> String {
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

unsafe fn check(status: i32, error: *const c_char) {
    if status == 0 {
        return;
    }
    let text = if error.is_null() {
        stepcast_status_text(status)
    } else {
        error
    };
    eprintln!("fleet: {}", string(text));
    std::process::exit(1);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        std::process::exit(2);
    }
    let (cluster_file, device_file) = (text(&arguments[1]), text(&arguments[2]));
    let mut error: *mut c_char = null_mut();
    let (mut cluster, mut device, mut workload) = (null_mut(), null_mut(), null_mut());
    let (mut predictor, mut plan, mut compiled) = (null_mut(), null_mut(), null_mut());
    unsafe {
        // Once for a cluster and a workload.
        let status = stepcast_cluster_read(cluster_file.as_ptr(), &mut cluster, &mut error);
        check(status, error);
        let mut info: ClusterInfo = sized();
        check(stepcast_cluster_get_info(cluster, &mut info), null());
        let status =
            stepcast_device_read(device_file.as_ptr(), info.device, &mut device, &mut error);
        check(status, error);
        let status = stepcast_workload_find(text("resnet50").as_ptr(), &mut workload, &mut error);
        check(status, error);
        let status =
            stepcast_predictor_create(cluster, workload, device, &mut predictor, &mut error);
        check(status, error);

        // Once for a kind of plan.
        check(stepcast_plan_create(&mut plan, &mut error), error);
        let (field, value) = (text("strategy"), text("ring"));
        let status = stepcast_plan_set_text(plan, field.as_ptr(), value.as_ptr(), &mut error);
        check(status, error);
        let field = text("local_batch");
        let status = stepcast_plan_set_number(plan, field.as_ptr(), 128.0, &mut error);
        check(status, error);
        let status = stepcast_compiled_create(predictor, plan, null(), &mut compiled, &mut error);
        check(status, error);

        // As often as there is something to ask: the steps of all, in one call.
        let nodes = [1, 2, 3, 4];
        let count = nodes.len();
        let (mut step, mut low, mut high) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
        let queries = QueryArrays {
            count,
            workers: nodes.as_ptr(), // one device each; all else is the plan's
            nodes: nodes.as_ptr(),
            ..sized()
        };
        let answers = ForecastArrays {
            step_time_s: step.as_mut_ptr(),
            low_s: low.as_mut_ptr(),
            high_s: high.as_mut_ptr(),
            ..sized()
        };
        check(
            stepcast_compiled_predict_many(compiled, &queries, &answers, null_mut()),
            null(),
        );
        let strategy = string(stepcast_compiled_strategy(compiled));
        println!(
            "resnet50 on {}, {strategy}, local batch 128",
            string(info.name)
        );
        println!("nodes  step [s]   from     to");
        for i in 0..count {
            println!(
                "{:5}  {:8.3}  {:5.3}  {:5.3}",
                nodes[i], step[i], low[i], high[i]
            );
        }

        // And the best batches, where a sample counts for what it is worth.
        let (mut local_batch, mut accumulation_steps) = (vec![0; count], vec![0; count]);
        let mut goodput = vec![0.0; count];
        let allocations = AllocationArrays {
            count,
            workers: nodes.as_ptr(),
            nodes: nodes.as_ptr(),
            ..sized()
        };
        let mut search: BatchSearch = sized();
        check(stepcast_batch_search_init(&mut search), null());
        search.least_global_batch = 128;
        search.most_global_batch = 8192;
        search.noise_scale_samples = 4000.0;
        search.initial_batch_samples = 128.0;
        let choices = BatchChoiceArrays {
            local_batch: local_batch.as_mut_ptr(),
            accumulation_steps: accumulation_steps.as_mut_ptr(),
            goodput_samples_per_s: goodput.as_mut_ptr(),
            ..sized()
        };
        let status =
            stepcast_compiled_choose_batches(compiled, &allocations, &search, &choices, null_mut());
        check(status, null());
        println!("nodes  local batch  micro-steps  goodput [samples/s]");
        for i in 0..count {
            println!(
                "{:5}  {:11}  {:11}  {:19.1}",
                nodes[i], local_batch[i], accumulation_steps[i], goodput[i]
            );
        }

        stepcast_compiled_free(compiled);
        stepcast_plan_free(plan);
        stepcast_predictor_free(predictor);
        stepcast_workload_free(workload);
        stepcast_device_free(device);
        stepcast_cluster_free(cluster);
    }
}
