import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RequestInfo } from '../../../../src/apiserver/http/exchange.ts';
import { isTrue, requestInfo } from '../../../../src/apiserver/http/request.ts';

function info(method: string, target: string): RequestInfo {
  const [path = '', query = ''] = target.split('?');
  return requestInfo(method, path, new URLSearchParams(query));
}

describe('resource requests', () => {
  // columns: method, target, verb, group, version, namespace, resource, subresource, name
  test.each([
    ['GET', '/api/v1/services', 'list', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/services/', 'list', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/services?watch=1', 'watch', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/services?watch=', 'watch', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/services?watch=False', 'list', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/namespaces/a/services', 'list', '', 'v1', 'a', 'services', '', ''],
    ['GET', '/api/v1/namespaces/a/services/x', 'get', '', 'v1', 'a', 'services', '', 'x'],
    ['GET', '/api/v1/namespaces/a/services/x?watch=1', 'get', '', 'v1', 'a', 'services', '', 'x'],
    ['HEAD', '/api/v1/namespaces/a/services/x', 'get', '', 'v1', 'a', 'services', '', 'x'],
    ['OPTIONS', '/api/v1/namespaces/a/services/x', '', '', 'v1', 'a', 'services', '', 'x'],
    ['POST', '/api/v1/namespaces/a/services', 'create', '', 'v1', 'a', 'services', '', ''],
    ['PUT', '/api/v1/namespaces/a/services/x', 'update', '', 'v1', 'a', 'services', '', 'x'],
    ['PUT', '/api/v1/namespaces/a/services/x/status', 'update', '', 'v1', 'a', 'services', 'status', 'x'],
    ['PATCH', '/api/v1/namespaces/a/services/x', 'patch', '', 'v1', 'a', 'services', '', 'x'],
    ['DELETE', '/api/v1/namespaces/a/services/x', 'delete', '', 'v1', 'a', 'services', '', 'x'],
    ['DELETE', '/api/v1/namespaces/a/services', 'deletecollection', '', 'v1', 'a', 'services', '', ''],
    ['GET', '/api/v1/namespaces', 'list', '', 'v1', '', 'namespaces', '', ''],
    ['POST', '/api/v1/namespaces', 'create', '', 'v1', '', 'namespaces', '', ''],
    ['GET', '/api/v1/namespaces/a', 'get', '', 'v1', 'a', 'namespaces', '', 'a'],
    ['PUT', '/api/v1/namespaces/a/status', 'update', '', 'v1', 'a', 'namespaces', 'status', 'a'],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update', '', 'v1', 'a', 'namespaces', 'finalize', 'a'],
    ['GET', '/api/v1/nodes/n1', 'get', '', 'v1', '', 'nodes', '', 'n1'],
    ['GET', '/apis/apps/v1/deployments', 'list', 'apps', 'v1', '', 'deployments', '', ''],
    [
      'GET',
      '/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/s',
      'get',
      'discovery.k8s.io',
      'v1',
      'a',
      'endpointslices',
      '',
      's',
    ],
    ['GET', '/api/v1/watch/services', 'watch', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/watch/namespaces/a/services', 'watch', '', 'v1', 'a', 'services', '', ''],
    ['GET', '/api/v1/watch/namespaces/a/services/x', 'watch', '', 'v1', 'a', 'services', '', 'x'],
    ['GET', '/api/v1/watch/namespaces', 'watch', '', 'v1', '', 'namespaces', '', ''],
    ['GET', '/api/v1/services?fieldSelector=metadata.name%3Dx', 'list', '', 'v1', '', 'services', '', 'x'],
    [
      'GET',
      '/api/v1/services?fieldSelector=metadata.name%3D%3Dx,a%3Db',
      'list',
      '',
      'v1',
      '',
      'services',
      '',
      'x',
    ],
    [
      'GET',
      '/api/v1/services?watch=1&fieldSelector=metadata.name%3Dx',
      'watch',
      '',
      'v1',
      '',
      'services',
      '',
      'x',
    ],
    ['GET', '/api/v1/services?fieldSelector=metadata.name!%3Dx', 'list', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/services?fieldSelector=metadata.name%3D..', 'list', '', 'v1', '', 'services', '', ''],
    ['GET', '/api/v1/services?fieldSelector=metadata.name%3Da%2Fb', 'list', '', 'v1', '', 'services', '', ''],
  ])('%s %s', (method, target, verb, group, version, namespace, resource, subresource, name) => {
    const { path: _path, rest: _rest, ...seen } = info(method, target);
    expect(seen).toEqual({
      isResource: true,
      verb,
      group,
      version,
      namespace,
      resource,
      subresource,
      name,
    });
  });

  test('what stands behind a subresource is kept', () => {
    const proxied = info('GET', '/api/v1/namespaces/a/services/https:x:443/proxy/index.html/b');
    expect(proxied.subresource).toBe('proxy');
    expect(proxied.name).toBe('https:x:443');
    expect(proxied.rest).toEqual(['index.html', 'b']);
  });

  test('an empty segment inside is a segment', () => {
    expect(info('GET', '/api//v1/namespaces')).toMatchObject({
      version: '',
      resource: 'v1',
      name: 'namespaces',
    });
  });
});

describe('other requests', () => {
  test.each([
    ['GET', '/', 'get'],
    ['GET', '/api', 'get'],
    ['GET', '/api/v1', 'get'],
    ['POST', '/apis/apps', 'post'],
    ['GET', '/apis/apps/v1', 'get'],
    ['GET', '/healthz', 'get'],
    ['HEAD', '/a/b/c/d', 'head'],
    ['GET', '/api/v1/watch', 'get'],
  ])('%s %s', (method, target, verb) => {
    expect(info(method, target)).toMatchObject({ isResource: false, verb, resource: '' });
  });
});

test('a boolean parameter is true unless it says 0 or false', () => {
  expect(['', '1', 'true', 'maybe'].map(isTrue)).toEqual([true, true, true, true]);
  expect([null, '0', 'false', 'FALSE'].map(isTrue)).toEqual([false, false, false, false]);
});

test('any path is understood in some way, and a built path gives back its parts', () => {
  const segment = fc.stringMatching(/^[a-z0-9.-]{1,12}$/);
  fc.assert(fc.property(fc.string(), fc.string(), (method, path) => void info(method, path)));
  fc.assert(
    fc.property(segment, segment, segment, (namespace, resource, name) => {
      fc.pre(resource !== 'status' && resource !== 'finalize');
      const seen = info('GET', `/apis/g/v1/namespaces/${namespace}/${resource}/${name}`);
      expect(seen).toMatchObject({ verb: 'get', namespace, resource, name, subresource: '' });
    }),
  );
});
