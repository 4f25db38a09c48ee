import { testSeeds } from './faults/test-seeds.ts';

testSeeds(1, 100);
