import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { certificateReader } from '../../src/apiserver/pki/signing-request.ts';
import { podCertificateRequests } from '../../src/client/resources.ts';
import { PodCertificates } from '../../src/controllers/kubelet/volumes/pod-certificates.ts';
import { certificatesOf } from '../../src/controllers/kubelet/volumes/plan.ts';
import type { PodCertificateRequest } from '../../src/objects/types/certificates.generated.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { issueCertificate } from '../support/certificates.ts';
import { controllerContext } from '../support/controller-context.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { call } from '../support/test-server.ts';
import { node, pod } from '../unit/controllers/workloads/samples.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({ nodes: 0, controllers: [] });
  await call(server.client, 'POST', '/api/v1/namespaces/default/serviceaccounts', {
    body: { metadata: { name: 'web' } },
  });
});
afterAll(() => server.stop());

const hourMs = 3_600_000;
const root = issueCertificate({ subject: 'root', isCA: true, keyUsage: 0x04 });
/** Whole seconds, as certificates have them. */
const begin = new Date().setMilliseconds(0);
const notIssued = { problem: 'credential bundle is not issued yet' };

/** A kubelet with a Pod whose second source is a certificate. */
function kubelet(name: string) {
  const clock = new FakeClock(begin);
  const context = controllerContext(clock, server.client);
  const client = context.clients.for(podCertificateRequests);
  const certificates = new PodCertificates(context);
  const userAnnotations = { 'example.com/path': '/web' };
  const wanted = { signerName: 'example.com/signer', keyType: 'ECDSAP256', userAnnotations };
  const sources = [{ downwardAPI: { items: [] } }, { podCertificate: wanted }];
  const metadata = { name, namespace: 'default', uid: `uid-of-${name}` };
  const volumes = [{ name: 'v', projected: { sources } }];
  const asking = { ...pod(name, { spec: { serviceAccountName: 'web', volumes, containers: [] } }), metadata };
  const on = { ...node('n'), metadata: { name: 'n', uid: 'uid-of-n' } };
  const signal = AbortSignal.timeout(60_000);
  return {
    clock,
    recorded: context.recorded,
    certificate: async () => {
      const [projection] = certificatesOf(asking);
      return (await certificates.of(asking, on, signal)).get(projection?.key ?? '');
    },
    requests: async () => {
      const { items } = await client.list({ namespace: 'default' });
      return items.filter(({ spec }) => spec.podName === name);
    },
    answer: async (request: PodCertificateRequest | undefined, type: string, status: object = {}) => {
      if (request === undefined) throw new Error('there is no request');
      const condition = { type, status: 'True', reason: 'Because', message: 'of a test' };
      const conditions = [{ ...condition, lastTransitionTime: new Date(begin).toISOString() }];
      const { name: of = '' } = request.metadata;
      const patch = { status: { conditions, ...status } };
      await client.mergePatch('default', of, patch, { subresource: 'status', signal });
    },
    remove: async (request: PodCertificateRequest | undefined) =>
      await client.delete('default', request?.metadata.name ?? '', { signal }),
  };
}

/** What a signer answers. */
function signed({ spec }: PodCertificateRequest, from = begin): object {
  const asked = certificateReader.request(Buffer.from(spec.stubPKCS10Request, 'base64'));
  const key = Buffer.from(asked?.publicKey ?? '', 'base64');
  const publicKey = createPublicKey({ key, format: 'der', type: 'spki' });
  const times = { from: new Date(from), to: new Date(from + 24 * hourMs) };
  const { certificate } = issueCertificate({ subject: 'web', signer: root, publicKey, ...times });
  const at = (ms: number): string => new Date(ms).toISOString();
  return {
    certificateChain: `text between\n${certificate}`,
    ...{ notBefore: at(from), beginRefreshAt: at(from + hourMs), notAfter: at(from + 24 * hourMs) },
  };
}

it('is asked for once, used until it is renewed, and asked for anew in its time', async () => {
  const { clock, certificate, requests, answer } = kubelet('renewed');
  expect([await certificate(), await certificate()]).toEqual([notIssued, notIssued]);
  const [first, ...others] = await requests();
  expect(others).toEqual([]);
  expect(first?.metadata.ownerReferences).toMatchObject([{ kind: 'Pod', name: 'renewed' }]);
  expect(first?.spec).toMatchObject({
    ...{ signerName: 'example.com/signer', podUID: 'uid-of-renewed', serviceAccountName: 'web' },
    ...{ nodeName: 'n', nodeUID: 'uid-of-n', unverifiedUserAnnotations: { 'example.com/path': '/web' } },
  });
  if (first !== undefined) await answer(first, 'Issued', signed(first));
  const issued = await certificate();
  if (issued === undefined || issued.problem !== undefined) throw new Error(issued?.problem);
  expect(issued.chain).toMatch(/^-----BEGIN CERTIFICATE-----\n/);
  expect(new X509Certificate(issued.chain).checkPrivateKey(createPrivateKey(issued.key))).toBe(true);
  await clock.advance(hourMs - 1);
  expect([await certificate(), (await requests()).length]).toEqual([issued, 1]);
  await clock.advance(1);
  expect([await certificate(), (await requests()).length]).toEqual([issued, 2]);
  const second = (await requests()).find(({ metadata }) => metadata.name !== first?.metadata.name);
  if (second !== undefined) await answer(second, 'Issued', signed(second));
  const renewed = await certificate();
  expect(renewed).not.toEqual(issued);
  expect(renewed).toHaveProperty('chain');
});

it.each(['Denied', 'Failed'])('is not asked for again where the signer has said %s', async (type) => {
  const { certificate, requests, answer } = kubelet(type.toLowerCase());
  await certificate();
  await answer((await requests())[0], type);
  const why = `PodCertificateRequest was permanently ${type.toLowerCase()}: reason="Because" message="of a test"`;
  expect([await certificate(), await certificate()]).toEqual([{ problem: why }, { problem: why }]);
  expect(await requests()).toHaveLength(1);
});

it('is asked for again when the request was deleted', async () => {
  const { certificate, requests, remove } = kubelet('deleted');
  await certificate();
  await remove((await requests())[0]);
  expect([await certificate(), await certificate()]).toEqual([notIssued, notIssued]);
  expect(await requests()).toHaveLength(1);
});

it('is named where the signer does not renew it', async () => {
  const { clock, recorded, certificate, requests, answer } = kubelet('forgotten');
  await certificate();
  const [request] = await requests();
  if (request !== undefined) await answer(request, 'Issued', signed(request));
  const issued = await certificate();
  await clock.advance(hourMs + 600_000);
  expect([await certificate(), recorded]).toEqual([issued, []]);
  await clock.advance(1);
  await certificate();
  await certificate();
  const overdue = 'Warning CertificateOverdueForRefresh forgotten: PodCertificate refresh overdue';
  expect(recorded).toEqual([overdue]);
  await clock.advance(23 * hourMs);
  await certificate();
  expect(recorded).toEqual([overdue, 'Warning CertificateExpired forgotten: PodCertificate expired']);
});
