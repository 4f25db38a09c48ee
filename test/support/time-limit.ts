import { beforeEach } from 'vitest';
import { isTimeOver } from './time-over.ts';

beforeEach((context) => {
  context.skip(isTimeOver(), 'the time of this run is over (SERVICENET_TESTS_UNTIL)');
});
