import { testEgressSeeds } from './egress/test-seeds.ts';

testEgressSeeds(3, 9);
