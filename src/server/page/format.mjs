// Figures as people read them. Pure.

// Three digits at most, and no more of them after the point than say something.
export function shortNumber(value) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 99.95 || size === 0) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(size >= 9.995 ? 1 : 2).replace(/\.?0+$/, '');
}

// [text, unit] of a time.
export function timeParts(seconds) {
  if (!Number.isFinite(seconds)) return ['–', ''];
  if (seconds < 0.0995) return [shortNumber(seconds * 1e3), 'ms'];
  if (seconds < 9.995) return [seconds.toFixed(2), 's'];
  if (seconds < 119.5) return [shortNumber(seconds), 's'];
  if (seconds < 7170) return [`${Math.round(seconds / 60)}`, 'min'];
  return [shortNumber(seconds / 3600), 'h'];
}

export function timeText(seconds) {
  return timeParts(seconds).join(' ').trim();
}

export function bytesText(bytes) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1023.5 && unit < units.length - 1) bytes /= 1024, ++unit;
  return `${unit === 0 ? Math.round(bytes) : shortNumber(bytes)} ${units[unit]}`;
}

export function percentText(share) {
  if (!Number.isFinite(share)) return '–';
  const percent = share * 100;
  // 100 % means all of them, and 0 % none.
  if (percent > 99.9 && percent < 100) return '99.9 %';
  if (percent > 0 && percent < 0.1) return '0.1 %';
  return `${percent >= 99.95 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`;
}

export function countText(count, one, many = `${one}s`) {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

// What an answer took, in a line. `usage` and `troupe` are the server's; either may be missing.
export function costText(usage, troupe) {
  const parts = [];
  if (usage) {
    parts.push(countText(usage.completion_tokens, 'token'));
    if (troupe?.decode_s > 0 && usage.completion_tokens > 1) {
      parts.push(`${shortNumber((usage.completion_tokens - 1) / troupe.decode_s)} tokens/s`);
    }
  }
  if (troupe) {
    parts.push(`first token ${timeText(troupe.queue_s + troupe.first_token_s)}`);
    const asks = troupe.expert_hits + troupe.expert_misses;
    if (asks > 0) parts.push(`${percentText(troupe.expert_hits / asks)} hits`);
    if (troupe.bytes_read > 0) parts.push(`${bytesText(troupe.bytes_read)} read`);
    if (troupe.stall_s > 0) parts.push(`waited ${timeText(troupe.stall_s)}`);
    if (troupe.substitutions > 0) parts.push(countText(troupe.substitutions, 'substitution'));
  }
  return parts.join(' · ');
}
