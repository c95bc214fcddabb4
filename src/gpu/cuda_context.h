// What a card's driver knows of this program, and what it has made for it: each object is given
// back when nobody has it, and the context behind the last of them.
#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "gpu/cuda_api.h"

namespace troupe {

// The context of a device that all in a process share, so that a second one costs nothing.
class CudaContext {
 public:
  static Result<std::shared_ptr<const CudaContext>> Retain(const CudaApi& api, CUdevice device) {
    CUcontext context = nullptr;
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(api, api.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
    return std::shared_ptr<const CudaContext>(new CudaContext(api, device, context));
  }
  ~CudaContext() { api_.DevicePrimaryCtxRelease(device_); }
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaApi& api() const { return api_; }

  // A context is current in a thread, and a device is opened on one and works on another: before
  // all else that is called.
  Status Enter() const { return CudaStatus(api_, api_.CtxSetCurrent(context_), "cuCtxSetCurrent"); }
  Status StatusOf(CUresult error, std::string_view call) const {
    return CudaStatus(api_, error, call);
  }

 private:
  CudaContext(const CudaApi& api, CUdevice device, CUcontext context)
      : api_(api), device_(device), context_(context) {}

  const CudaApi& api_;
  CUdevice device_;
  CUcontext context_;
};
using CudaContextPtr = std::shared_ptr<const CudaContext>;

template <typename Object>
class CudaHandle {
 public:
  using Release = CUresult(CUDAAPI*)(Object);

  CudaHandle() = default;
  CudaHandle(CudaContextPtr context, Object object, Release release)
      : context_(std::move(context)), object_(object), release_(release) {}
  CudaHandle(CudaHandle&& other) noexcept
      : context_(std::move(other.context_)), object_(other.object_), release_(other.release_) {}
  CudaHandle& operator=(CudaHandle&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~CudaHandle() {
    if (context_ != nullptr && context_->Enter().ok()) release_(object_);
  }

  Object get() const { return object_; }
  const CudaContext& context() const { return *context_; }

 private:
  CudaContextPtr context_;  // null: there is nothing
  Object object_{};
  Release release_ = nullptr;
};

}  // namespace troupe
