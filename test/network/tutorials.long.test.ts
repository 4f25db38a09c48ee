import { describeTutorials } from './support/tutorials.ts';

describeTutorials('unshare');
