package usercode

import (
	"database/sql"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

// TestGoAndSQLAgreeOnWhatIsTheUsers for paths as recordings, imports and snapshots have them.
func TestGoAndSQLAgreeOnWhatIsTheUsers(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for file, users := range map[string]bool{
		"/home/user/train.py":       true,
		"train.py":                  true,
		"src/model/os_utils.py":     true,
		"/home/user/mytorch/net.py": true,
		"/home/o'brien/train.py":    true,
		"/opt/json/train.py":        true,
		"/usr/lib/python3/dist-packages/torch/nn/functional.py": false,
		"/venv/lib/python3.12/site-packages/lightning/loop.py":  false,
		"/usr/lib64/python3.11/threading.py":                    false,
		"/src/pytorch/torch/nn/modules/module.py":               false,
		"torch/nn/modules/module.py":                            false,
		"threading.py":                                          false,
		"multiprocessing/queues.py":                             false,
		"jax/_src/api.py":                                       false,
		"<frozen importlib._bootstrap>":                         false,
		"/home/me/kz/train.py":                                  true,
		"/tmp/torchinductor_me/kz/ckzelv3wbsonkf5s6j54vaiktgt2ajeng26jxmdfyfeeu56gldst.py": false,
		"<string>": false,
		"<built-in method linear of type object at 0x7f0000000>": false,
		"": false,
	} {
		if Is(file) != users {
			t.Errorf("Is(%q) is %v", file, !users)
		}
		var said bool
		if err := db.QueryRow("SELECT "+SQL("f")+" FROM (SELECT ? AS f)", file).Scan(&said); err != nil || said != users {
			t.Errorf("SQL says %v of %q: %v", said, file, err)
		}
	}
	var said bool
	if err := db.QueryRow("SELECT " + SQL("f") + " FROM (SELECT NULL::VARCHAR AS f)").Scan(&said); err != nil || said {
		t.Errorf("of no file SQL says %v: %v", said, err)
	}
}

// TestGoAndSQLAgreeOnPartsOfPyTorch for its optimizers and its data loader.
func TestGoAndSQLAgreeOnPartsOfPyTorch(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for file, is := range map[any][2]bool{
		"/usr/lib/python3/dist-packages/torch/optim/adamw.py":              {true, false},
		"torch/optim/optimizer.py":                                         {true, false},
		"/venv/site-packages/torch/utils/data/dataloader.py":               {false, true},
		"torch/utils/data/_utils/collate.py":                               {false, true},
		"/home/me/optim/adamw.py":                                          {false, false},
		"/home/me/mytorch/optim/adamw.py":                                  {false, false},
		"/usr/lib/python3/dist-packages/torch/nn/utils/clip_grad.py":       {false, false},
		"/usr/lib/python3/dist-packages/torch/optim/optimizer.py/fake.txt": {false, false},
		"":  {false, false},
		nil: {false, false},
	} {
		name, _ := file.(string)
		if IsOptimizer(name) != is[0] || IsLoader(name) != is[1] {
			t.Errorf("%q: %v and %v, want %v", name, IsOptimizer(name), IsLoader(name), is)
		}
		var said [2]bool
		err := db.QueryRow("SELECT "+OptimizerSQL("f")+", "+LoaderSQL("f")+" FROM (SELECT ?::VARCHAR AS f)", file).Scan(&said[0], &said[1])
		if err != nil || said != is {
			t.Errorf("SQL says %v of %v: %v", said, file, err)
		}
	}
}
