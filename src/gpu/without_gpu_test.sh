# What the tests return on a machine without OpenCL and CUDA: skipped, or failed where a device is expected.
# usage: without_gpu_test.sh GPU_TESTS
set -u
tests=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
: >"$folder/libOpenCL.so.1"  # found first, and no library
: >"$folder/libcuda.so.1"
export LD_LIBRARY_PATH="$folder"
unset TROUPE_EXPECT_GPU TROUPE_TEST_GPU

expect() {
  right=$1
  shift
  "$@" >"$folder/said" 2>&1
  status=$?
  [ "$status" -eq "$right" ] && return
  cat "$folder/said"
  echo "$*: returned $status, not $right"
  exit 1
}

some=--gtest_filter=GpuDevices.SayWhatTheyAre
pure=--gtest_filter=ChooseGpus.NoneMeansNoDevice
expect 77 "$tests" "$some"
expect 0 "$tests" "$pure"
expect 1 env TROUPE_EXPECT_GPU=1 "$tests" "$some"
expect 0 env TROUPE_EXPECT_GPU=1 "$tests" "$pure"
