#include "fetch/curl_api.h"

#include <dlfcn.h>

#include "base/library_function.h"

namespace troupe {
namespace {

constexpr const char* kCurl = "libcurl.so.4";
constexpr unsigned kOldest =
    0x075500;  // 7.85: the first that can be held to http and https by name

bool LookUpAll(void* library, CurlApi& api) {
  return LookUp(library, "curl_global_init", api.GlobalInit) &&
         LookUp(library, "curl_version_info", api.VersionInfo) &&
         LookUp(library, "curl_easy_init", api.Init) &&
         LookUp(library, "curl_easy_cleanup", api.Cleanup) &&
         LookUp(library, "curl_easy_reset", api.Reset) &&
         LookUp(library, "curl_easy_setopt", api.SetOption) &&
         LookUp(library, "curl_easy_perform", api.Perform) &&
         LookUp(library, "curl_easy_getinfo", api.GetInfo) &&
         LookUp(library, "curl_easy_header", api.Header) &&
         LookUp(library, "curl_easy_strerror", api.ErrorText) &&
         LookUp(library, "curl_slist_append", api.Append) &&
         LookUp(library, "curl_slist_free_all", api.FreeAll);
}

struct LoadedCurl {
  LoadedCurl() {
    void* const library = dlopen(kCurl, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* const why = dlerror();
      status = Error(Code::kNotFound, "models are got by libcurl, which cannot be loaded: {}",
                     why == nullptr ? kCurl : why);
    } else if (!LookUpAll(library, api) ||
               api.VersionInfo(CURLVERSION_NOW)->version_num < kOldest) {
      status = Error(Code::kNotFound, "{} is older than libcurl 7.85", kCurl);
    } else if (api.GlobalInit(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      status = Error(Code::kInternal, "libcurl could not be initialised");
    }
  }
  CurlApi api;
  Status status;
};

}  // namespace

Result<const CurlApi*> LoadCurl() {
  static const LoadedCurl loaded;
  if (!loaded.status.ok()) return loaded.status;
  return &loaded.api;
}

}  // namespace troupe
