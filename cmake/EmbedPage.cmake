# Joins a page's HTML, styles and scripts into one file and writes that as C++, with the hashes that
# its Content-Security-Policy names and a tag that changes with it.
# usage: cmake -DPAGE=FOLDER -DSTYLES=a.css|b.css -DSCRIPTS=a.mjs|b.mjs -DOUT=FILE.cc -P EmbedPage.cmake
#
# The HTML has <style>@STYLE@</style> and <script type="module">@SCRIPT@</script>. Scripts are ES
# modules, so that tests can load each by itself; joined they are one module, and what they import
# from each other is there already. So imports and exports stand in lines of their own, and the outer
# names of all scripts differ.
cmake_minimum_required(VERSION 3.25)

# base64(out hex): the bytes that a text of hexadecimal digits names.
function(base64 out hex)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  string(LENGTH "${hex}" digits)
  math(EXPR last "${digits} - 1")
  foreach(at RANGE 0 ${last} 6)
    string(SUBSTRING "${hex}" ${at} 6 three)
    string(LENGTH "${three}" given)
    string(SUBSTRING "${three}0000" 0 6 three)
    math(EXPR characters "${given} / 2 + 1")  # of 3, 2 or 1 bytes
    foreach(shift IN ITEMS 18 12 6 0)
      if(characters GREATER 0)
        math(EXPR place "(0x${three} >> ${shift}) & 63")
        string(SUBSTRING "${alphabet}" ${place} 1 character)
        string(APPEND text "${character}")
      else()
        string(APPEND text "=")
      endif()
      math(EXPR characters "${characters} - 1")
    endforeach()
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(join out names)
  string(REPLACE "|" ";" names "${names}")
  set(joined "\n")
  foreach(name IN LISTS names)
    file(READ ${PAGE}/${name} text)
    string(REGEX REPLACE "(^|\n)import [^\n]*" "\\1" text "${text}")
    string(REGEX REPLACE "(^|\n)export (async |function |class |const |let )" "\\1\\2" text "${text}")
    string(APPEND joined "${text}")
  endforeach()
  set(${out} "${joined}" PARENT_SCOPE)
endfunction()

join(style "${STYLES}")
join(script "${SCRIPTS}")
if(script MATCHES "</script|\n(import|export) " OR style MATCHES "</style")
  message(FATAL_ERROR "${PAGE}: '${CMAKE_MATCH_0}' cannot stand in a file that is part of a page")
endif()
# Two of one name are an error that a browser alone would tell of.
string(REGEX MATCHALL "\n(async )?(function|class|const|let) [A-Za-z0-9_]+" outer "${script}")
list(TRANSFORM outer REPLACE ".* " "")
list(SORT outer)
set(before "")
foreach(name IN LISTS outer)
  if(name STREQUAL before)
    message(FATAL_ERROR "${PAGE}: two scripts have an outer name '${name}'")
  endif()
  set(before "${name}")
endforeach()
string(SHA256 style_hash "${style}")
string(SHA256 script_hash "${script}")
base64(style_hash "${style_hash}")
base64(script_hash "${script_hash}")

file(READ ${PAGE}/index.html html)
string(REPLACE "@STYLE@" "${style}" html "${html}")
string(REPLACE "@SCRIPT@" "${script}" html "${html}")
string(SHA256 tag "${html}")
string(SUBSTRING "${tag}" 0 16 tag)

file(WRITE ${OUT}.html "${html}")
file(READ ${OUT}.html bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "// Made by cmake/EmbedPage.cmake.
#include \"server/live_page_data.h\"

namespace troupe {
namespace {

constexpr unsigned char kLivePageBytes[] = {
${bytes}};

}  // namespace

LivePageData LivePageFile() {
  return {.html = {reinterpret_cast<const char*>(kLivePageBytes), sizeof(kLivePageBytes)},
          .style_hash = \"${style_hash}\",
          .script_hash = \"${script_hash}\",
          .tag = \"${tag}\"};
}

}  // namespace troupe
")
