#include "split/codec/code_cost.h"

#include <gtest/gtest.h>

#include "split/codec/random_states_for_test.h"

namespace troupe {
namespace {

// Each time it is asked a microsecond has passed.
class TickingClock final : public Clock {
 public:
  Nanos Now() const override { return now_ += 1000; }

 private:
  mutable Nanos now_ = 0;
};

TEST(CodeCost, IsThatOfARowOfThoseThatWereTimed) {
  Rng rng(1);
  const std::shared_ptr<CutBasis> basis = RandomBasis(64, 16, rng, {3});
  const StateCode code{.rank = 16, .form = StateForm::kInt8};
  const CodeCost cost = MeasureCode(basis, code, TickingClock()).value();
  EXPECT_DOUBLE_EQ(cost.encode_seconds, 1e-6 / 16);
  EXPECT_DOUBLE_EQ(cost.decode_seconds, 1e-6 / 16);
}

TEST(CodeCost, DirectionsTakeTime) {
  Rng rng(1);
  const std::shared_ptr<CutBasis> basis = RandomBasis(1024, 512, rng, {3});
  const MonotonicClock clock;
  const CodeCost plain = MeasureCode(basis, {.form = StateForm::kInt8}, clock).value();
  const CodeCost ranked =
      MeasureCode(basis, {.rank = 512, .form = StateForm::kInt8}, clock).value();
  EXPECT_GT(plain.encode_seconds, 0);
  EXPECT_GT(ranked.encode_seconds, 0);
  EXPECT_GT(ranked.decode_seconds, 0);
}

TEST(CodeCost, OfARankThatTheBasisDoesNotHaveIsAnError) {
  Rng rng(1);
  EXPECT_FALSE(MeasureCode(RandomBasis(64, 16, rng, {3}), {.rank = 17}, TickingClock()).ok());
}

}  // namespace
}  // namespace troupe
