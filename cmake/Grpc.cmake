# troupe_grpc: what of gRPC the cluster links. pkg-config would link the fifty libraries, too, that
# gRPC stands on.
find_library(GRPCPP_LIBRARY grpc++ REQUIRED)
find_library(GRPC_LIBRARY grpc REQUIRED)
find_library(GPR_LIBRARY gpr REQUIRED)
find_library(ABSL_SYNCHRONIZATION_LIBRARY absl_synchronization REQUIRED)  # of its queues, inline
add_library(troupe_grpc INTERFACE)
target_link_libraries(troupe_grpc INTERFACE ${GRPCPP_LIBRARY} ${GRPC_LIBRARY} ${GPR_LIBRARY}
  ${ABSL_SYNCHRONIZATION_LIBRARY})
