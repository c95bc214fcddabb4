// libcurl's functions, looked up when a model is first asked for: the library and the others that
// it needs would take 3 MiB of every other command's memory. Only web_client.cc includes this.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/status.h"

namespace troupe {

struct CurlApi {
  decltype(&curl_global_init) GlobalInit = nullptr;
  decltype(&curl_version_info) VersionInfo = nullptr;
  decltype(&curl_easy_init) Init = nullptr;
  decltype(&curl_easy_cleanup) Cleanup = nullptr;
  decltype(&curl_easy_reset) Reset = nullptr;
  decltype(&curl_easy_setopt) SetOption = nullptr;
  decltype(&curl_easy_perform) Perform = nullptr;
  decltype(&curl_easy_getinfo) GetInfo = nullptr;
  decltype(&curl_easy_header) Header = nullptr;
  decltype(&curl_easy_strerror) ErrorText = nullptr;
  decltype(&curl_slist_append) Append = nullptr;
  decltype(&curl_slist_free_all) FreeAll = nullptr;
};

// Initialised, for as long as the program runs; kNotFound where there is no libcurl 7.85 or newer.
Result<const CurlApi*> LoadCurl();

}  // namespace troupe
