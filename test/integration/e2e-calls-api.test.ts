import { afterAll, beforeAll, describe } from 'vitest';
import { E2eCluster } from '../support/e2e-cluster.ts';
import { conversion } from './e2e-calls/conversion.ts';
import { core } from './e2e-calls/core.ts';
import { customDefinitions } from './e2e-calls/definitions.ts';
import { discovery } from './e2e-calls/discovery.ts';
import { events } from './e2e-calls/events.ts';
import { lists } from './e2e-calls/lists.ts';
import { machinery } from './e2e-calls/machinery.ts';
import { watchList } from './e2e-calls/watch-list.ts';

describe("calls of Kubernetes' e2e tests that need no nodes", () => {
  let cluster: E2eCluster;
  beforeAll(async () => {
    cluster = await E2eCluster.start({ nodes: 0 });
  });
  afterAll(async () => cluster.stop());

  describe('core', () => core(() => cluster));
  describe('definitions', () => customDefinitions(() => cluster));
  describe('discovery', () => discovery(() => cluster));
  describe('events', () => events(() => cluster));
  describe('lists', () => lists(() => cluster));
  describe('machinery', () => machinery(() => cluster));
  describe('watch-list', () => watchList(() => cluster));
  describe('conversion', () => conversion(() => cluster));
});
