import { testSeeds } from './faults/test-seeds.ts';

testSeeds(101, 100);
