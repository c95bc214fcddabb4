// BuddyMoE's substitution (Wang et al., Algorithm 1) on a device, slot by slot what
// expert/substitution/buddies.h decides: a group of items has a token, and an item a slot of it.
// Gates compare numbers of the same operations (base/exact_log.h), so that they open alike.
//
// The policy goes through a token's slots one after the other, and each takes the best buddy that
// is left. Here all of them ask at once. An expert that two slots want goes to the one whose turn
// is earlier, by compare-and-swap, whoever came first; the other one goes on down its list. As
// every expert prefers slots in the same order, there is one outcome that no slot and expert would
// rather change, and it is the policy's (docs/design/gpu.md has the argument).
//
// The words in capitals are kernel_source.cc's, and a language's: names_opencl.cl has OpenCL C's.

#define FREE 0xffffffffu   // no slot claims the expert
#define CHOSEN 0u          // the router gave it to the token: nobody may claim it
#define NOBODY 0xffffffffu
#define BIT(words, i) (((words)[(i) / 32u] >> ((i) % 32u)) & 1u)

CONSTANT double kExp64[] = {EXP64_COEFFICIENTS};
CONSTANT double kLog64[] = {LOG64_COEFFICIENTS};

DEVICE double Exp64(double x) {
  if (!(x >= EXP64_LEAST)) return 0.0;
  const int n = (int)(x * EXP64_LOG2E - 0.5);
  const double r = (x - n * EXP64_LN2_HIGH) - n * EXP64_LN2_LOW;
  double sum = kExp64[EXP64_COUNT - 1u];
  for (uint k = EXP64_COUNT - 1u; k-- > 0;) sum = sum * r + kExp64[k];
  return sum * DOUBLE_OF((ulong)(n + 1023) << 52);
}

DEVICE double Log64(double x) {
  const ulong bits = BITS_OF_DOUBLE(x);
  int n = (int)(bits >> 52) - 1023;
  double one_and_f = DOUBLE_OF((bits & 0xffffffffffffful) | 1023ul << 52);
  if (one_and_f > LOG64_ROOT_OF_TWO) {
    one_and_f *= 0.5;
    ++n;
  }
  const double f = one_and_f - 1.0;
  const double s = f / (2.0 + f);
  const double s2 = s * s;
  double series = 0.0;
  for (uint k = LOG64_COUNT; k-- > 0;) series = (series + kLog64[k]) * s2;
  const double half_square = 0.5 * f * f;
  const double low = s * (half_square + series) + n * LOG64_LN2_LOW;
  return n * LOG64_LN2_HIGH - ((half_square - low) - f);
}

// What a buddy's share is worth to the token: Psi. `most` is its highest score; 0: not known.
DEVICE double WorthOf(float share, uint expert, double eta, GLOBAL const float* scores,
                      float most) {
  const double worth = share;
  if (eta == 0.0) return worth;
  const double relative = most > 0.0f ? (double)scores[expert] / most : 0.0;
  return worth * (1.0 + eta * relative);
}

// The best resident buddy behind the one at `place` of worth `worth`, of those at [begin, end); its
// place, or NOBODY.
DEVICE uint NextBuddy(GLOBAL const uint* list_experts, GLOBAL const float* list_shares, uint begin,
                      uint end, GLOBAL const uint* resident, double eta, GLOBAL const float* scores,
                      float most, uint place, double* worth) {
  uint best = NOBODY;
  double best_worth = 0.0;
  for (uint i = begin; i < end; ++i) {
    const uint expert = list_experts[i];
    if (!BIT(resident, expert)) continue;
    const double its = WorthOf(list_shares[i], expert, eta, scores, most);
    const bool seen = place != NOBODY && (its > *worth || (its == *worth && i <= place));
    if (seen || (best != NOBODY && its <= best_worth)) continue;
    best = i;
    best_worth = its;
  }
  *worth = best_worth;
  return best;
}

// answers[token][slot] = the expert that computes the slot: the chosen one, or its buddy.
// list_begins has a layer after the other: an expert of this one has the buddies between its number
// from first_list on and the next; `rank` of them are looked at. What the gates close and slots get
// is added to counts.
KERNEL ITEMS_ARE(BUDDY_ITEMS)
void AnswerByBuddies(uint experts, uint top_k, uint tokens, GLOBAL const uint* chosen,
                     GLOBAL const float* weights, GLOBAL const float* all_scores,
                     GLOBAL const uint* resident, GLOBAL const uint* missing,
                     GLOBAL const uint* list_begins, uint first_list,
                     GLOBAL const uint* list_experts, GLOBAL const float* list_shares,
                     uint best_first, uint rho, uint rank, ulong eta_bits, ulong tau_bits,
                     ulong temperature_bits, ulong gamma_bits, ulong beta_bits, uint budget,
                     GLOBAL uint* answers, GLOBAL uint* counts) {
  LOCAL uint asked[BUDDY_EXPERTS / 32u];
  LOCAL uint claims[BUDDY_EXPERTS];  // 1 + the turn of the slot that has the expert
  LOCAL uint picks[BUDDY_ITEMS];
  LOCAL double evened[BUDDY_ITEMS], logs[BUDDY_ITEMS];
  LOCAL float highest[BUDDY_ITEMS];
  const uint token = GROUP(0);
  GLOBAL const uint* begins = list_begins + first_list;
  const double eta = DOUBLE_OF(eta_bits), temperature = DOUBLE_OF(temperature_bits);
  GLOBAL const uint* of_token = chosen + (ulong)token * top_k;
  GLOBAL const float* its_weights = weights + (ulong)token * top_k;
  GLOBAL const float* scores = all_scores ? all_scores + (ulong)token * experts : all_scores;
  const bool has_slot = ITEM < top_k;
  const uint own = has_slot ? of_token[ITEM] : 0;
  const bool open = has_slot && BIT(missing, own);

  for (uint i = ITEM; i < BUDDY_EXPERTS / 32u; i += BUDDY_ITEMS) asked[i] = 0;
  for (uint i = ITEM; i < experts; i += BUDDY_ITEMS) claims[i] = FREE;
  picks[ITEM] = NOBODY;
  float heaviest = its_weights[0];
  for (uint i = 1; i < top_k; ++i) heaviest = its_weights[i] > heaviest ? its_weights[i] : heaviest;
  double v = 0.0;
  if (has_slot && its_weights[ITEM] > 0.0f) {
    v = its_weights[ITEM];
    if (temperature != 1.0) v = Exp64(Log64(v / heaviest) / temperature);
  }
  evened[ITEM] = v;
  logs[ITEM] = v > 0.0 ? v * Log64(v) : 0.0;
  float my_highest = 0.0f;
  if (eta != 0.0 && scores) {
    for (uint i = ITEM; i < experts; i += BUDDY_ITEMS) {
      my_highest = scores[i] > my_highest ? scores[i] : my_highest;
    }
  }
  highest[ITEM] = my_highest;
  WAIT_FOR_GROUP();
  // Each group looks at the choices of all tokens: the gate of the pass is about their experts.
  for (uint i = ITEM; i < tokens * top_k; i += BUDDY_ITEMS) {
    LOCAL_OR(&asked[chosen[i] / 32u], 1u << (chosen[i] % 32u));
  }
  if (has_slot) claims[own] = CHOSEN;
  WAIT_FOR_GROUP();

  // All items of a group work out the gates, each by itself, and come to the same.
  uint asked_in_all = 0, asked_missing = 0;
  for (uint i = 0; i < (experts + 31u) / 32u; ++i) {
    asked_in_all += COUNT_OF_BITS(asked[i]);
    asked_missing += COUNT_OF_BITS(asked[i] & missing[i]);
  }
  const double share = asked_in_all == 0 ? 0.0 : (double)asked_missing / asked_in_all;
  const bool pass_may = budget > 0 ? asked_missing < budget : share < DOUBLE_OF(beta_bits);
  bool any_open = false;
  double sum = 0.0, v_log_v = 0.0, largest = 0.0, second = 0.0;
  float most = 0.0f;
  for (uint i = 0; i < top_k; ++i) {
    any_open = any_open || BIT(missing, of_token[i]);
    const double its = evened[i];
    sum += its;
    if (its > 0.0) v_log_v += logs[i];
    const double lesser = its < largest ? its : largest;
    second = second < lesser ? lesser : second;
    largest = largest < its ? its : largest;
  }
  for (uint i = 0; i < BUDDY_ITEMS; ++i) most = highest[i] > most ? highest[i] : most;
  double entropy = 0.0, margin = 1.0;
  if (top_k > 1 && sum > 0.0) {
    entropy = (Log64(sum) - v_log_v / sum) / Log64((double)top_k);
    entropy = entropy < 0.0 ? 0.0 : entropy > 1.0 ? 1.0 : entropy;
    margin = (largest - second) / sum;
  }
  const bool asks = asked_missing > 0 && pass_may && any_open;
  const bool tau_closes = asks && entropy <= DOUBLE_OF(tau_bits);
  const bool gamma_closes = asks && !tau_closes && margin >= DOUBLE_OF(gamma_bits);
  const bool may = asks && !tau_closes && !gamma_closes;
  if (ITEM == 0) {
    if (token == 0 && asked_missing > 0 && !pass_may) COUNT(&counts[BETA_CLOSED]);
    if (tau_closes) COUNT(&counts[TAU_CLOSED]);
    if (gamma_closes) COUNT(&counts[GAMMA_CLOSED]);
  }

  if (may && open) {
    // An item goes on for the slot that it took an expert from, so that nobody waits for anybody.
    uint slot = ITEM, place = NOBODY;
    double worth = 0.0;
    for (;;) {
      const uint me = 1u + (best_first ? slot : top_k - 1u - slot);
      const uint begin = begins[of_token[slot]];
      const uint length = begins[of_token[slot] + 1u] - begin;
      const uint end = begin + (length < rank ? length : rank);
      place = NextBuddy(list_experts, list_shares, begin, end, resident, eta, scores, most, place,
                        &worth);
      if (place == NOBODY) break;
      const uint expert = list_experts[place];
      uint holder = FREE;
      for (;;) {
        const uint found = LOCAL_SWAP(&claims[expert], holder, me);
        const bool swapped = found == holder;
        holder = found;
        if (swapped || found < me) break;
      }
      if (holder < me) continue;  // its turn is earlier
      if (holder == FREE) break;
      slot = best_first ? holder - 1u : top_k - holder;
      // Where that slot was in its own list.
      uint its = begins[of_token[slot]];
      while (list_experts[its] != expert) ++its;
      place = its;
      worth = WorthOf(list_shares[its], expert, eta, scores, most);
    }
  }
  WAIT_FOR_GROUP();
  if (may) {
    for (uint i = ITEM; i < experts; i += BUDDY_ITEMS) {
      const uint claim = claims[i];
      if (claim != FREE && claim != CHOSEN) picks[best_first ? claim - 1u : top_k - claim] = i;
    }
  }
  WAIT_FOR_GROUP();
  if (has_slot) {
    uint answer = own;
    if (may && open) {
      // Later slots took nothing that this one wants: it sees rho as the policy does.
      uint before = 0;
      for (uint i = 0; i < top_k; ++i) {
        const bool earlier = best_first ? i < ITEM : i > ITEM;
        if (earlier && picks[i] != NOBODY) ++before;
      }
      if (before >= rho) {
        COUNT(&counts[RHO_CLOSED]);
      } else if (begins[own + 1u] == begins[own]) {
        COUNT(&counts[NO_LIST]);
      } else if (picks[ITEM] == NOBODY) {
        COUNT(&counts[NONE_RESIDENT]);
      } else {
        COUNT(&counts[SUBSTITUTED]);
        answer = picks[ITEM];
      }
    }
    answers[(ulong)token * top_k + ITEM] = answer;
  }
}
