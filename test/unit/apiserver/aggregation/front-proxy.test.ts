import { describe, expect, test } from 'vitest';
import { userHeaders } from '../../../../src/apiserver/aggregation/front-proxy.ts';

describe('userHeaders', () => {
  test('sends names beyond ASCII as UTF-8, as Go does', () => {
    const { 'X-Remote-User': name, 'X-Remote-Group': groups } = userHeaders({
      name: 'josé',
      uid: '',
      groups: ['管理者'],
      extra: {},
    });
    const sent = [name, groups].flat().map((value) => Buffer.from(value ?? '', 'latin1').toString('utf8'));
    expect(sent).toEqual(['josé', '管理者']);
  });
});
