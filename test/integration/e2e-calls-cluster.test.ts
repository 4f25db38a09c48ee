import { afterAll, beforeAll, describe } from 'vitest';
import { E2eCluster } from '../support/e2e-cluster.ts';
import { classes } from './e2e-calls/classes.ts';
import { disruption } from './e2e-calls/disruption.ts';
import { flowControl } from './e2e-calls/flow-control.ts';
import { framework } from './e2e-calls/framework.ts';
import { policies } from './e2e-calls/policies.ts';
import { storage } from './e2e-calls/storage.ts';

describe("calls of Kubernetes' e2e tests of the cluster as a whole", () => {
  let cluster: E2eCluster;
  beforeAll(async () => {
    cluster = await E2eCluster.start();
  });
  afterAll(async () => cluster.stop());

  describe('framework', () => framework(() => cluster));
  describe('classes', () => classes(() => cluster));
  describe('disruption', () => disruption(() => cluster));
  describe('flow-control', () => flowControl(() => cluster));
  describe('policies', () => policies(() => cluster));
  describe('storage', () => storage(() => cluster));
});
