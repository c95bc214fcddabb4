#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::string OfText(std::string_view text) {
  return Base64(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(Base64, HasTheTextsOfTheStandard) {
  EXPECT_EQ(OfText(""), "");
  EXPECT_EQ(OfText("f"), "Zg==");
  EXPECT_EQ(OfText("fo"), "Zm8=");
  EXPECT_EQ(OfText("foo"), "Zm9v");
  EXPECT_EQ(OfText("foobar"), "Zm9vYmFy");
}

TEST(Base64, AnyBytesComeBack) {
  Rng rng(TestSeed());
  for (std::size_t size = 0; size < 200; ++size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Below(256));
    EXPECT_EQ(BytesOfBase64(Base64(bytes)), bytes);
  }
}

TEST(Base64, WhatItNeverGivesIsNotRead) {
  for (const char* text :
       {"Zg=", "Zg", "Z", "Z===", "Zh==", "Zm9=", "Zm9v!AAA", "====", "Zg==AAAA", "Zm 9v"}) {
    EXPECT_FALSE(BytesOfBase64(text)) << text;
  }
}

}  // namespace
}  // namespace troupe
