import { testSeeds } from './faults/test-seeds.ts';

// The seeds 1 to 200 are part of npm run test:long.
testSeeds(201, 3);
