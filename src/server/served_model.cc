#include "server/served_model.h"

#include "server/cut_host.h"

namespace troupe {

void ServedModel::Close() {
  if (close) close();
  if (cuts != nullptr) cuts->EndAll();
  model->Close();
}

}  // namespace troupe
