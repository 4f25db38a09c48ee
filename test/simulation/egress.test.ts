import { testEgressSeeds } from './egress/test-seeds.ts';

// Others are part of npm run test:long.
testEgressSeeds(1, 2);
