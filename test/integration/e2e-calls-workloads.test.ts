import { afterAll, beforeAll, describe } from 'vitest';
import { E2eCluster } from '../support/e2e-cluster.ts';
import { auth } from './e2e-calls/auth.ts';
import { controllerRevisions } from './e2e-calls/controller-revisions.ts';
import { daemonSets } from './e2e-calls/daemon-sets.ts';
import { deployments } from './e2e-calls/deployments.ts';
import { garbage } from './e2e-calls/garbage.ts';
import { jobs } from './e2e-calls/jobs.ts';
import { namespaces } from './e2e-calls/namespaces.ts';
import { quota } from './e2e-calls/quota.ts';
import { replicationControllers } from './e2e-calls/replication-controllers.ts';
import { statefulSets } from './e2e-calls/stateful-sets.ts';
import { watch } from './e2e-calls/watch.ts';

describe("calls of Kubernetes' e2e tests of workloads and what keeps them", () => {
  let cluster: E2eCluster;
  beforeAll(async () => {
    cluster = await E2eCluster.start({ nodes: 2, authorizationMode: 'RBAC' });
  });
  afterAll(async () => cluster.stop());

  describe('auth', () => auth(() => cluster));
  describe('watch', () => watch(() => cluster));
  describe('quota', () => quota(() => cluster));
  describe('namespaces', () => namespaces(() => cluster));
  describe('garbage', () => garbage(() => cluster));
  // It counts DaemonSets in all namespaces.
  describe('daemon-sets', () => daemonSets(() => cluster));
  describe('controller-revisions', () => controllerRevisions(() => cluster));
  describe('deployments', () => deployments(() => cluster));
  describe('jobs', () => jobs(() => cluster));
  describe('replication-controllers', () => replicationControllers(() => cluster));
  describe('stateful-sets', () => statefulSets(() => cluster));
});
