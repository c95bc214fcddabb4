#include "cluster/transport/grpc_values.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <utility>

#include "cluster/face/certificate_error.h"

namespace troupe {

grpc::Slice SliceOf(Frame frame) {
  if (frame.empty()) return {};
  auto owned = std::make_unique<Frame>(std::move(frame));
  std::byte* const data = owned->data();
  const std::size_t size = owned->size();
  return {data, size, [](void* taken) { delete static_cast<Frame*>(taken); }, owned.release()};
}

Status StatusOf(const grpc::Status& status) {
  std::string message = status.error_message();
  std::ranges::replace(message, '\n', ' ');
  if (message.empty()) message = "the peer ended the link";
  switch (status.error_code()) {
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Status(Code::kResourceExhausted, message);
    case grpc::StatusCode::UNIMPLEMENTED:
      return Status(Code::kUnimplemented, message);
    default:
      return Status(BlamesCertificates(message) ? Code::kPermissionDenied : Code::kUnavailable,
                    message);
  }
}

PeerIdentity IdentityOf(std::string address,
                        const std::shared_ptr<const grpc::AuthContext>& shown) {
  PeerIdentity peer{.address = std::move(address)};
  if (!shown || !shown->IsPeerAuthenticated()) return peer;
  peer.secure = true;
  std::vector<std::string>& names = peer.names;
  for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
    for (const grpc::string_ref& name : shown->FindPropertyValues(property)) {
      names.emplace_back(name.data(), name.size());
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return peer;
}

}  // namespace troupe
