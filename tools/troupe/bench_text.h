// The text that `troupe bench` reads when it is given none: written for this purpose, prose and
// code of several kinds, because routing depends on what is read and random tokens read like
// nothing.
#pragma once

#include <string_view>

namespace troupe {

inline constexpr std::string_view kBenchText =
    R"TEXT(The lighthouse at the end of the breakwater had been dark for eleven years when the
council voted to light it again. Nobody remembered who had proposed it. The harbour master
thought it was the schoolteacher, the schoolteacher thought it was one of the fishermen, and the
fishermen, who had steered by the radio mast on the hill for as long as the lamp had been out,
said that it did not matter, since a light is a light and somebody must have wanted it.

The work took most of a winter. First the gallery had to be cleared of gulls, who did not agree
with the decision. Then the lens, which had been wrapped in sailcloth by a careful keeper and
forgotten by everyone after him, was carried down one prism at a time, washed in warm water and
carried up again. The clockwork that had turned it was beyond repair, so the electrician from the
ferry built a small controller from a motor, two relays and a board no larger than a playing card.

    def next_flash(now, period=12.0, flashes=3, spacing=1.5):
        """Seconds until the lamp should be lit again."""
        phase = now % period
        for k in range(flashes):
            start = k * spacing
            if phase <= start:
                return start - phase
        return period - phase

She tested it in the kitchen for a week. The numbers were simple enough: three flashes, a second
and a half apart, then darkness until twelve seconds had passed. At night the ceiling of the
kitchen lit up and went dark, and the neighbours began to ask.

    struct lamp {
        unsigned period_ms;
        unsigned flashes;
        unsigned spacing_ms;
        int (*set)(struct lamp *self, int on);
    };

    static int run(struct lamp *l, unsigned now_ms)
    {
        unsigned phase = now_ms % l->period_ms;
        unsigned slot = phase / l->spacing_ms;

        if (slot >= l->flashes)
            return l->set(l, 0);
        return l->set(l, phase % l->spacing_ms < 300);
    }

Am Tag der Einweihung kamen mehr Leute, als das Dorf Einwohner hat. Der Bürgermeister sprach kurz,
weil der Wind stark war, und die Kapelle spielte laut, aus demselben Grund. Als es endlich dunkel
wurde, zählten alle mit: eins, zwei, drei, und dann die lange Pause, in der man das Meer hörte.

Quelques jours plus tard, un voilier entra dans le port en pleine nuit. Son équipage raconta qu'il
avait aperçu la lumière depuis le large, et qu'il avait cherché en vain sur ses cartes un phare
qui, selon elles, n'existait plus. On leur offrit du café, puis on corrigea la carte au crayon.

The cost of it all was written on the wall of the engine room, where the keepers had always kept
their accounts: 14 + 9 = 23 bags of lime, 23 - 6 = 17 of them used, 4 * 36 = 144 prisms washed,
of which 2 were cracked and 142 whole, and one lamp, which at 60 watts for 3 * 0.3 seconds in
every 12 burns about as much in a night as a kettle does while a cup of tea is made.
)TEXT";

}  // namespace troupe
