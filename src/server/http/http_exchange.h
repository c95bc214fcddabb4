// A request and its response under way, between the handler's threads and the connection: turns
// what a handler says into bytes of HTTP/1.1 and puts them into the outbox. Without sockets.
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "server/http/http_outbox.h"
#include "server/http/http_reply.h"

namespace troupe {

struct ExchangeFacts {
  bool head = false;       // asked by HEAD: the body is left out
  bool chunks = true;      // HTTP/1.1: a body of unknown length comes in chunks
  bool keep_alive = true;  // the connection goes on after it
  std::size_t most_unread = 1 << 20;
  std::shared_ptr<UnreadPool> unread;  // of all exchanges
};

class HttpExchange {
 public:
  // `wake` is called, from any thread, when there is something to send and nobody sends, or the end
  // has come.
  HttpExchange(const ExchangeFacts& facts, std::function<void()> wake)
      : facts_(facts), wake_(std::move(wake)), outbox_(facts.most_unread, facts.unread, wake_) {}

  void Send(HttpResponse response);
  // In place of a response that was turned away, or that nobody gave; a short one, which finds
  // room.
  void SendInstead(HttpResponse response);
  void Begin(HttpResponse head);
  bool Write(std::string_view bytes);
  void End();
  void Break(int status);
  bool MayBreak() const { return facts_.chunks; }
  void Note(HttpUse use);
  // Let go of without a response.
  void Abandon();
  void WhenDoubted(std::function<bool()> call);

  struct ToSend {
    std::string bytes;  // empty: there are none yet, or
    bool over = false;  // never again
  };
  // For the thread that sends.
  ToSend Next();

  bool ended() const { return ended_; }
  bool begun() const { return begun_; }
  bool broken() const { return broken_; }
  int status() const { return status_; }  // of the response; 0: there is none yet
  // What logs tell of it: its id, and what was noted.
  void Tell(HttpEnded& ended) const;
  // The client has more to read than it may: it is to be let go.
  bool overflowed() const { return overflowed_ || outbox_.is_let_go(); }
  // All clients have too much to read for a whole response, of which nothing was sent.
  bool turned_away() const { return turned_away_; }
  // Nobody has answered, or will.
  bool abandoned() const { return abandoned_; }
  // As HttpReply::WhenDoubted has it; absent: nobody can say anything.
  std::optional<bool> AskInDoubt();
  // Known once it has begun: a body without length and without chunks ends with the connection.
  bool keep_alive() const { return keep_alive_ && facts_.keep_alive; }
  // From now on: the server is being drained.
  void CloseAfter() { keep_alive_ = false; }
  HttpOutbox& outbox() { return outbox_; }

 private:
  HttpHeaders Connection() const;
  void TakeId(const HttpResponse& response);
  bool Put(std::string bytes);
  bool PutWhole(HttpResponse response);

  const ExchangeFacts facts_;
  const std::function<void()> wake_;
  HttpOutbox outbox_;
  mutable Mutex mu_;
  std::string id_ TROUPE_GUARDED_BY(mu_);
  HttpUse use_ TROUPE_GUARDED_BY(mu_);
  std::function<bool()> in_doubt_ TROUPE_GUARDED_BY(mu_);
  std::atomic<int> status_ = 0;
  std::atomic<bool> begun_ = false, ending_ = false, ended_ = false, overflowed_ = false,
                    turned_away_ = false, abandoned_ = false, broken_ = false, keep_alive_ = true;
};

// What a handler holds; one that it lets go of unanswered is answered with 500.
HttpReplyPtr MakeReply(std::shared_ptr<HttpExchange> exchange);

}  // namespace troupe
