import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { RequestMetrics } from '../../../../src/apiserver/http/request-metrics.ts';
import { HttpRequest, parseTarget } from '../../../../src/apiserver/http/request.ts';

function request(method: string, url: string): HttpRequest {
  const incoming = new IncomingMessage(new Socket());
  incoming.method = method;
  incoming.url = url;
  const user = { name: 'a', uid: '', groups: [], extra: {} };
  return new HttpRequest(incoming, parseTarget(url), user, () => new AbortController().signal);
}

test('requests are counted by what was served, not by what was asked for', async () => {
  const metrics = new RequestMetrics(({ resource, subresource }) => {
    return resource === 'services' && ['', 'status'].includes(subresource);
  });
  metrics.observe(request('GET', '/api/v1/services'), 200, 0.5);
  metrics.observe(request('GET', '/api/v1/services'), 200, 0.25);
  metrics.observe(request('PUT', '/api/v1/namespaces/a/services/x/status'), 409, 1);
  for (let i = 0; i < 100; i++) metrics.observe(request('GET', `/api/v1/nonsense-${i}`), 404, 0);
  // With RBAC, requests for made-up names are refused before their existence is checked.
  for (let i = 0; i < 100; i++) {
    metrics.observe(request('GET', `/apis/made-up-${i}/v1/names`), 403, 0);
    metrics.observe(request('GET', `/api/v1/namespaces/a/services/x/part-${i}`), 403, 0);
  }
  const text = await metrics.text([{ resource: 'services', count: 3 }]);
  const lines = text.split('\n').filter((line) => line.startsWith('apiserver_'));
  expect(lines).toEqual(
    expect.arrayContaining([
      'apiserver_request_total{verb="LIST",group="",resource="services",subresource="",code="200"} 2',
      'apiserver_request_seconds_total{verb="LIST",group="",resource="services",subresource="",code="200"} 0.75',
      'apiserver_request_total{verb="UPDATE",group="",resource="services",subresource="status",code="409"} 1',
      'apiserver_request_total{verb="LIST",group="",resource="",subresource="",code="404"} 100',
      'apiserver_request_total{verb="LIST",group="",resource="",subresource="",code="403"} 100',
      'apiserver_request_total{verb="GET",group="",resource="",subresource="",code="403"} 100',
      'apiserver_storage_objects{resource="services"} 3',
    ]),
  );
  expect(lines.filter((line) => line.startsWith('apiserver_request_total'))).toHaveLength(5);
  expect(text).toContain('process_resident_memory_bytes');
  expect(await metrics.text([])).toContain('apiserver_request_total');
});
