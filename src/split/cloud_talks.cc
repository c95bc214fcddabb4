#include "split/cloud_talks.h"

#include <string_view>
#include <utility>

namespace troupe {

HttpClient::Cancel CloudTalks::Start(const HttpUrl& url, const HttpRequest& request,
                                     HttpListener listener, bool is_patient) {
  if (is_patient) return client_.Start(url, request, std::move(listener));
  const auto talk = std::make_shared<Talk>();
  talk->url = url;
  talk->heard = clock_.Now();
  talk->on_end = std::move(listener.on_end);
  talk->cancel = client_.Start(
      url, request,
      {.on_head =
           [talk, this, on_head = std::move(listener.on_head)](const HttpResponse& head) {
             talk->heard = clock_.Now();
             if (on_head) on_head(head);
           },
       .on_piece =
           [talk, this, on_piece = std::move(listener.on_piece)](std::string_view piece) {
             talk->heard = clock_.Now();
             if (on_piece) on_piece(piece);
           },
       .on_end =
           [talk](const Status& status) {
             talk->is_over = true;
             if (const auto on_end = std::exchange(talk->on_end, {}); on_end) on_end(status);
           }});
  impatient_.push_back(talk);
  return [weak = std::weak_ptr(talk)] {
    const auto still = weak.lock();
    if (still == nullptr || std::exchange(still->is_over, true)) return;
    still->on_end = {};
    still->cancel();
  };
}

void CloudTalks::OnTime() {
  const Nanos now = clock_.Now();
  std::list<std::shared_ptr<Talk>> silent;
  std::erase_if(impatient_, [&](const auto& weak) {
    const auto talk = weak.lock();
    if (talk == nullptr || talk->is_over) return true;
    if (now - talk->heard <= silence_) return false;
    silent.push_back(talk);
    return true;
  });
  for (const auto& talk : silent) {
    if (std::exchange(talk->is_over, true)) continue;  // another one's end has cancelled it
    talk->cancel();
    client_.Forget(talk->url);
    if (const auto on_end = std::exchange(talk->on_end, {}); on_end) {
      on_end(Error(Code::kDeadlineExceeded, "no word of the cloud in time"));
    }
  }
}

}  // namespace troupe
