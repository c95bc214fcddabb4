#include "server/http/error_message.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ErrorMessage, OfAServerIsItsMessageOrTheBeginningOfItsBody) {
  EXPECT_EQ(ErrorMessageIn(R"({"error":{"message":"no key"}})"), "no key");
  EXPECT_EQ(ErrorMessageIn(R"({"error":"no key"})"), "no key");
  EXPECT_EQ(ErrorMessageIn("<html>\n<body>"), "<html>");
  EXPECT_EQ(ErrorMessageIn(std::string(500, 'x')).size(), 200u);
  EXPECT_EQ(ErrorMessageIn(""), "");
}

TEST(ErrorMessage, ABodyWithoutAnErrorTellsOfNone) {
  EXPECT_EQ(ErrorMessageOf(Json{{"choices", 1}}), std::nullopt);
  EXPECT_EQ(ErrorMessageOf(Json{{"error", Json{{"code", 7}}}}), R"({"code":7})");
}

}  // namespace
}  // namespace troupe
