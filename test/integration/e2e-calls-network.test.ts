import { afterAll, beforeAll, describe } from 'vitest';
import { E2eCluster } from '../support/e2e-cluster.ts';
import { dualStack } from './e2e-calls/dual-stack.ts';
import { endpointSlices } from './e2e-calls/endpoint-slices.ts';
import { endpoints } from './e2e-calls/endpoints.ts';
import { loadBalancer } from './e2e-calls/load-balancer.ts';
import { networking } from './e2e-calls/networking.ts';
import { serviceEndpoints } from './e2e-calls/service-endpoints.ts';
import { serviceTerminating } from './e2e-calls/service-terminating.ts';
import { serviceTypes } from './e2e-calls/service-types.ts';
import { services } from './e2e-calls/services.ts';
import { topology } from './e2e-calls/topology.ts';
import { traffic } from './e2e-calls/traffic.ts';

describe("calls of Kubernetes' e2e tests of Services and their endpoints", () => {
  let cluster: E2eCluster;
  beforeAll(async () => {
    cluster = await E2eCluster.start();
  });
  afterAll(async () => cluster.stop());

  describe('services', () => services(() => cluster));
  describe('service-types', () => serviceTypes(() => cluster));
  describe('service-endpoints', () => serviceEndpoints(() => cluster));
  describe('service-terminating', () => serviceTerminating(() => cluster));
  describe('endpoints', () => endpoints(() => cluster));
  describe('endpoint-slices', () => endpointSlices(() => cluster));
  describe('networking', () => networking(() => cluster));
  describe('traffic', () => traffic(() => cluster));
  describe('topology', () => topology());
  describe('dual-stack', () => dualStack());
  describe('load-balancer', () => loadBalancer());
});
