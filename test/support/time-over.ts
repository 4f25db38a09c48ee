/** Seconds since 1970 after which no test begins, for a gate that has so much time; unset or empty: none. */
const until = Number(process.env['SERVICENET_TESTS_UNTIL'] || Infinity);

export function isTimeOver(): boolean {
  return Date.now() / 1000 > until;
}
