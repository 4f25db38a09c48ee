import { beforeEach } from 'vitest';

/** Seconds since 1970 after which no test begins, for a gate that has so much time; unset: none. */
const until = Number(process.env['SERVICENET_TESTS_UNTIL'] ?? Infinity);

beforeEach((context) => {
  context.skip(Date.now() / 1000 > until, 'the time of this run is over (SERVICENET_TESTS_UNTIL)');
});
