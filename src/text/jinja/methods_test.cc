#include <gtest/gtest.h>

#include "text/jinja/render_for_test.h"

namespace troupe::jinja {
namespace {

// The expected texts are what Python's Jinja renders.

TEST(Methods, StripsBlanksOrASetOfCharacters) {
  ExpectValues({
      {"w.strip()", "two  words"},
      {"w.lstrip()", "two  words\t\n"},
      {"w.rstrip()", "  two  words"},
      {"'xxaxx'.strip('x')", "a"},
      {"'xyayx'.strip('xy')", "a"},
      {"'éaé'.strip('é')", "a"},
      {"'xx'.strip('x')", ""},
      {"' a '.strip(none)", "a"},
      {"'\\u3000a\\u00a0'.strip()", "a"},
  });
}

TEST(Methods, SplitsAsPythonDoes) {
  ExpectValues({
      {"l.split(',')", "['a', 'b', '', 'c']"},
      {"l.split(',', 1)", "['a', 'b,,c']"},
      {"l.rsplit(',', 1)", "['a,b,', 'c']"},
      {"w.split()", "['two', 'words']"},
      {"w.split(none, 1)", "['two', 'words\\t\\n']"},
      {"w.rsplit(none, 1)", "['  two', 'words']"},
      {"''.split()", "[]"},
      {"''.split(',')", "['']"},
      {"'a<>b<>c'.split('<>')", "['a', 'b', 'c']"},
      {"'a b c'.split(maxsplit=1)", "['a', 'b c']"},
      {"'a\\nb\\r\\nc\\n'.splitlines()", "['a', 'b', 'c']"},
      {"'a\\nb'.splitlines(true)", "['a\\n', 'b']"},
      {"'a=b=c'.partition('=')", "('a', '=', 'b=c')"},
      {"'a=b=c'.rpartition('=')", "('a=b', '=', 'c')"},
      {"'abc'.partition('=')", "('abc', '', '')"},
      {"'abc'.rpartition('=')", "('', '', 'abc')"},
  });
}

TEST(Methods, ChangesCase) {
  ExpectValues({
      {"u.upper()", "GRÜSSE, ÉCOLE SS\n日本 🎈"},
      {"u.lower()", "grüße, école ß\n日本 🎈"},
      {"s.swapcase() if false else s.title()", "Hello World"},
      {"'they\\'re ÉCOLE x2y'.title()", "They'Re École X2Y"},
      {"u.capitalize()", "Grüße, école ß\n日本 🎈"},
      {"'ÀÉ ß Ωσς Яд'.lower()", "àé ß ωσς яд"},
      {"'àé ÿ ω яд'.upper()", "ÀÉ Ÿ Ω ЯД"},
  });
}

TEST(Methods, FindsAndReplaces) {
  ExpectValues({
      {"s.find('o')", "4"},
      {"s.rfind('o')", "7"},
      {"s.find('zz')", "-1"},
      {"u.find('É')", "7"},
      {"s.find('o', 5)", "7"},
      {"s.count('l')", "3"},
      {"s.count('')", "12"},
      {"s.replace('l', 'L')", "HeLLo WorLd"},
      {"s.replace('l', 'L', 1)", "HeLlo World"},
      {"'aaa'.replace('aa', 'b')", "ba"},
      {"'ab'.replace('', '-')", "-a-b-"},
      {"s.index('W')", "6"},
      {"s.startswith('He')", "True"},
      {"s.startswith(('x', 'He'))", "True"},
      {"s.endswith('ld')", "True"},
      {"s.startswith('World', 6)", "True"},
      {"s.removeprefix('Hello ')", "World"},
      {"s.removesuffix('zz')", "Hello World"},
      {"', '.join(['a', 'b'])", "a, b"},
      {"''.join([])", ""},
  });
}

TEST(Methods, AsksWhatATextIsMadeOf) {
  ExpectValues({
      {"'12'.isdigit()", "True"},
      {"''.isdigit()", "False"},
      {"'ab'.isalpha()", "True"},
      {"'a1'.isalnum()", "True"},
      {"' \\n'.isspace()", "True"},
      {"'AB1'.isupper()", "True"},
      {"'ab'.islower()", "True"},
      {"'1'.islower()", "False"},
  });
}

TEST(Methods, DictsGiveTheirItems) {
  ExpectValues({
      {"d.get(\"a\")", "1"},
      {"d.get(\"zz\")", "None"},
      {"d.get(\"zz\", 5)", "5"},
      {"d.keys()|list", "['a', 'b', 'c', 'items', 'k y']"},
      {"d.values()|list", "[1, 'two', None, 'own', [1, 2]]"},
      {"d.items()|list",
       "[('a', 1), ('b', 'two'), ('c', None), ('items', 'own'), ('k y', [1, 2])]"},
      {"d.copy() == d", "True"},
      {"{}.items()|list", "[]"},
      {"[1, 2, 1].count(1)", "2"},
      {"[1, 2].index(2)", "1"},
  });
}

TEST(Methods, WrongArgumentsFail) {
  ExpectFailures({
      "{{ s.split('') }}",
      "{{ s.split(1) }}",
      "{{ s.strip(1) }}",
      "{{ s.replace('a') }}",
      "{{ s.replace(1, 2) }}",
      "{{ s.startswith(1) }}",
      "{{ s.index('zz') }}",
      "{{ d.get() }}",
      "{{ d.get([]) }}",
      "{{ ','.join([1]) }}",
      "{{ s.upper(1) }}",
      "{{ s.nope() }}",
      "{{ a.append(1) }}",
      "{{ d.update({}) }}",
      "{{ d.pop(\"a\") }}",
      "{{ a.sort() }}",
      "{{ s.find() }}",
  });
}

}  // namespace
}  // namespace troupe::jinja
