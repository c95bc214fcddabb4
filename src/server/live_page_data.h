// The live page as the build has joined it (cmake/EmbedPage.cmake) from the files under page/.
#pragma once

#include <string_view>

namespace troupe {

struct LivePageData {
  std::string_view html;
  // SHA-256 in base64 of its only style and its only script.
  std::string_view style_hash, script_hash;
  std::string_view tag;  // another one whenever the page is another
};

LivePageData LivePageFile();

}  // namespace troupe
